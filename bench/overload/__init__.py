"""More than a broker can take in: what it does with it, and how it comes back."""
