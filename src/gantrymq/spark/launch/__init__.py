"""What stands between a command line and a Spark session: Java, Python, settings, progress."""
