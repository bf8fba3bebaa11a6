"""What a running process tells Prometheus and those who ask whether it is well."""
