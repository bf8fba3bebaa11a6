"""What a job has to say: values, JSON, text, a table to join with, and a page with plots."""

from gantrymq.spark.report.values import Check, Plot, Report, Series

__all__ = ["Check", "Plot", "Report", "Series"]
