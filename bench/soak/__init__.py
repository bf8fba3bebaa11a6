"""Hours of load with rolling restarts: does anything grow?"""
