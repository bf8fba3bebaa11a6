"""What a broker does with a request: values in, values out; no socket is known here."""
