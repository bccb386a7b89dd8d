"""How devices are connected, and how good a set of them is. Pure: values in, values out."""
