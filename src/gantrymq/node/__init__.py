"""Joins the layers into processes: brokers, name servers, both in one."""
