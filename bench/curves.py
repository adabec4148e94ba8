"""Curves as SVG, by Python alone: for figures of programs that run where nothing draws."""

import math

COLOURS = ("#1f2933", "#1668b8", "#c2541b", "#2b8a3e", "#8a3ffc")
WIDTH, HEIGHT = 880, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 200, 44, 52


def ticks(low, high, count):
    """About `count` round numbers from low to high."""
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= min((1, 2, 5, 10), key=lambda factor: abs((high - low) / (step * factor) - count))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def smooth(numbers, window):
    """Means of the last `window` numbers, fewer at the start."""
    return [sum(numbers[max(0, i + 1 - window):i + 1]) / min(i + 1, window) for i in range(len(numbers))]


def draw(title, x_label, y_label, curves, low=None, high=None):
    """An SVG picture of curves, each (name, list of numbers, note behind its name); x counts from 1."""
    length = max(len(numbers) for _, numbers, _ in curves)
    everything = [number for _, numbers, _ in curves for number in numbers if math.isfinite(number)]
    low = min(everything) if low is None else low
    high = max(everything) if high is None else high
    high = high if high > low else low + 1

    def x(step):
        return LEFT + (step - 1) / max(length - 1, 1) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (min(max(value, low), high) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15">{title}</text>']
    for value in ticks(low, high, 6):
        out.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#dde3e8"/>'
                   f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for step in ticks(1, max(length, 2), 6):
        out.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{x_label}</text>'
               f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_label}</text>')
    for number, (name, numbers, note) in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(i + 1):.1f},{y(value):.1f}" for i, value in enumerate(numbers) if math.isfinite(value))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        top = TOP + 12 + 38 * number
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {top - 4}h22" stroke="{colour}" stroke-width="2.4"/>'
                   f'<text x="{WIDTH - RIGHT + 42}" y="{top}">{name}</text>'
                   f'<text x="{WIDTH - RIGHT + 42}" y="{top + 15}" fill="#5c6b78">{note}</text>')
    return "\n".join(out) + "\n</svg>\n"
