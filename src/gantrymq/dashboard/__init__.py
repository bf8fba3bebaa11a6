"""The page for operators: a small web server over `gantrymq.admin`, for any RocketMQ cluster."""
