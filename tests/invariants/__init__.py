"""What must hold in a cluster, read off the API server's own objects. Nothing of the product is imported here."""
