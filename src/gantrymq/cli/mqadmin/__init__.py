"""`gantrymq admin`: mqadmin's sub-commands under mqadmin's own names and flags."""
