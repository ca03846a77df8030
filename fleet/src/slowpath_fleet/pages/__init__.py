"""HTML of the results: pages that stand alone, and fragments for notebooks."""
