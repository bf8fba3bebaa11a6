"""Who may do what: accounts, their files, and the check that stands in front of every handler."""
