"""What the pages ask for, subject by subject; `table` has all of it."""
