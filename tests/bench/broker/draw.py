#!/usr/bin/env python3
"""Draws the two pictures of docs/broker from what the benches measure: throughput against connections, and memory and
polling threads against applications.

usage: draw.py BUILD_DIR DOCS_DIR [CONNECTIONS...]

It runs broker_bench and broker_applications_bench of BUILD_DIR/bin, prints their tables, and writes connections.svg and
applications.svg into DOCS_DIR. All is in virtual time, so the same program draws the same pictures.
"""

import math
import pathlib
import subprocess
import sys

RED, BLUE, GREEN = ("#c0392b", ""), ("#1f6fb2", ""), ("#2e8b57", "5 4")
TOP, BOTTOM = 20, 260


def rows_of(program, *words):
    text = subprocess.run([str(program), *words], capture_output=True, text=True, check=True).stdout
    print(text, end="")
    return [[None if cell == "-" else float(cell) for cell in line.split()] for line in text.splitlines()[1:]]


class Chart:
    """One pair of axes: `across` and `up` take a value to its place."""

    def __init__(self, left, width, across, highest, step):
        self.left, self.width, self.across, self.highest = left, width, across, highest
        self.parts = []
        for value in range(0, highest + 1, step):
            y = self.y(value)
            self.parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#ddd"/>'
                              f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')

    def y(self, value):
        return BOTTOM - (BOTTOM - TOP) * value / self.highest

    def x(self, value):
        return self.left + self.width * self.across(value)

    def marks(self, values, name):
        for value in values:
            self.parts.append(f'<text x="{self.x(value):.1f}" y="278" text-anchor="middle">{value:,}</text>')
        self.parts.append(f'<text x="{self.left + self.width / 2:.0f}" y="296" text-anchor="middle">{name}</text>')

    def line(self, style, points):
        colour, dashes = style
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points if y is not None)
        self.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dashed(dashes)} points="{places}"/>')


def dashed(dashes):
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def legend(x, entries):
    parts = []
    for i, ((colour, dashes), name) in enumerate(entries):
        y = 56 + 20 * i
        parts.append(f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{colour}" stroke-width="2"{dashed(dashes)}/>'
                     f'<text x="{x + 30}" y="{y + 4}">{name}</text>')
    return parts


def write(path, width, parts):
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 300" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="300" fill="#fff"/>']
    path.write_text("\n".join(head + parts + ["</svg>"]) + "\n")


def draw_connections(rows, path):
    most = max(row[0] for row in rows)
    chart = Chart(50, 440, lambda n: math.log10(n) / math.log10(most), 40, 10)
    chart.marks([10**i for i in range(round(math.log10(most)) + 1)], "connections, one READ of 64 KiB open on each")
    chart.parts.append('<text x="10" y="14">Gbit/s</text>')
    names = [(RED, "a QP each"), (BLUE, "two shared QPs"), (GREEN, "six shared QPs")]
    for column, (style, _) in enumerate(names, 1):
        chart.line(style, [(row[0], row[column]) for row in rows])
    write(path, 640, chart.parts + legend(502, names))


def draw_applications(rows, path):
    most = max(row[0] for row in rows)
    parts = []
    for left, title, highest, step, columns in ((50, "MiB of queues and receives", 350, 50, (3, 5)),
                                                (400, "threads that poll", 70, 10, (6, 7))):
        chart = Chart(left, 270, lambda n: n / most, highest, step)
        parts.append(f'<text x="{left}" y="14" font-weight="bold">{title}</text>')
        chart.marks([1] + [int(most * i / 4) for i in range(1, 5)], "applications")
        for style, column in zip((RED, BLUE), columns):
            chart.line(style, [(row[0], row[column]) for row in rows])
        parts += chart.parts
    write(path, 860, parts + legend(700, [(RED, "own QPs"), (BLUE, "over a broker")]))


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: draw.py BUILD_DIR DOCS_DIR [CONNECTIONS...]")
    programs, docs = pathlib.Path(sys.argv[1]) / "bin", pathlib.Path(sys.argv[2])
    for name in ("broker_bench", "broker_applications_bench"):
        if not (programs / name).exists():
            sys.exit(f"{programs / name} is missing; scripts/build.sh release {name}")
    draw_connections(rows_of(programs / "broker_bench", *sys.argv[3:]), docs / "connections.svg")
    draw_applications(rows_of(programs / "broker_applications_bench"), docs / "applications.svg")


if __name__ == "__main__":
    main()
