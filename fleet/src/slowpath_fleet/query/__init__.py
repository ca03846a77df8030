"""A recording in SQL: its tables, and views of what they mean."""
