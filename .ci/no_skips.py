"""Fail if a test that could have run here was skipped: ``no_skips.py report.xml …`` (JUnit reports)."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET

# The reasons for which a machine may skip a test: what no installation gives it.
ALLOWED = re.compile(r"\bno GPU\b|^needs (MNIST|Pyodide)\b")


def unexpected_skips(report: str) -> list[str]:
    """Return a line for each test of ``report`` that was skipped for a reason that is not allowed."""
    return [
        f"{case.get('classname')}.{case.get('name')}: {skipped.get('message')}"
        for case in ET.parse(report).iter("testcase")
        for skipped in case.iter("skipped")
        if skipped.get("type") == "pytest.skip" and not ALLOWED.search(skipped.get("message", ""))
    ]


if __name__ == "__main__":
    reports = sys.argv[1:]
    if not reports:
        sys.exit("no_skips.py: name at least one report")
    skips = [line for report in reports for line in unexpected_skips(report)]
    if skips:
        sys.exit("Skipped, though it could have run here:\n  " + "\n  ".join(skips))
    print("No test was skipped that could have run here.")
