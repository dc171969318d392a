"""A report as one HTML page with pictures that are drawn here, as SVG inside the page and as PNG files."""
