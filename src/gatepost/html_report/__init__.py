"""A replayed archive as one self-contained page for people.

What a page says is plain data (``page.report_of``), read through those channels of gates that show no content. What is
drawn of it is apart (``plots``, ``picture``), and so is the markup (``page.render``).
"""

from gatepost.html_report.page import Report, render, report_of

__all__ = ["Report", "render", "report_of"]
