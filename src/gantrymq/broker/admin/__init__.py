"""What operators ask a broker and tell it: the requests behind `mqadmin`, one module a family."""
