"""What a test of gantrymq, or of a program that uses it, puts in place of clock and disk."""
