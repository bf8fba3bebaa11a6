"""`gantrymq topic|group|message|dlq|cluster|client ...`: mqadmin's powers under guessable names."""
