"""Which messages a consumer gets: tags, SQL92 expressions, and the bits that say it in advance."""
