"""The table of products beside their peers: as rows of Markdown, as JSON, and as a picture."""
import dataclasses
import json

PEERS = ("portable", "oneDNN", "dequantize + oneDNN", "llama.cpp", "read")
COLUMNS = ("work", "M x N x K", "threads", "ours, ms", "GFLOP/s", *PEERS, "goal", "holds", "kernel")
BAR, GAP, LEFT, WIDTH, TOP = 12, 5, 330, 560, 86
COLOURS = {"aim": "#2b8a3e", "reach": "#1668b8", "no": "#c2541b", "": "#8b98a5"}


@dataclasses.dataclass
class Line:
    work: str
    shape: str
    threads: int
    kernels: dict
    rounds: int
    flops: float
    best: dict              # seconds of one call, by contender
    ratios: dict            # by peer: best over best, median of the rounds' own ratios
    goals: tuple            # (beside whom, reach, aim)


@dataclasses.dataclass
class Table:
    machine: str
    threads: int
    cache: int
    commit: str
    date: str
    load: float
    peers: list
    lines: list = dataclasses.field(default_factory=list)


def verdict(line, goal):
    """aim, reach or no; nothing where the peer is missing."""
    beside, reach, aim = goal
    if beside not in line.ratios:
        return ""
    best = line.ratios[beside][0]
    return "aim" if best >= aim else "reach" if best >= reach else "no"


def heading(table):
    peers = "\n".join(f"- {peer}" for peer in table.peers)
    return (f"{table.machine}, {table.threads} threads, largest cache {table.cache >> 20} MiB, {table.date}, commit "
            f"{table.commit}, load {table.load:.1f} at the start\n{peers}\n\n| {' | '.join(COLUMNS)} |\n"
            f"|{'---|' * len(COLUMNS)}")


def text(line):
    ours = line.best["ours"]
    cells = [line.work, line.shape, str(line.threads), f"{ours * 1e3:.3g}", f"{line.flops / ours * 1e-9:.0f}"]
    cells += [f"{line.ratios[peer][0]:.2f} ({line.ratios[peer][1]:.2f})" if peer in line.ratios else ""
              for peer in PEERS]
    cells.append(", ".join(f"{beside} {reach:g}, {aim:g}" for beside, reach, aim in line.goals))
    cells.append(", ".join(verdict(line, goal) or "skipped" for goal in line.goals))
    return f"| {' | '.join(cells + [line.kernels['ours']])} |"


def closing(table):
    verdicts = [verdict(line, goal) for line in table.lines for goal in line.goals]
    return (f"\nBeside a peer: its time over ours, best over best (median of the rounds' own ratios); above 1 ours is "
            f"faster.\nread: the time in which the weights can be read, the share of the bandwidth.  goal: reach, "
            f"aim.\nOf {len(verdicts)} goals {verdicts.count('aim')} hold as aimed, {verdicts.count('reach')} are "
            f"reached, {verdicts.count('no')} are not, {verdicts.count('')} have no peer here.")


def as_json(table):
    return json.dumps(dataclasses.asdict(table), indent=1)


def bars(table):
    """(label, ratio, reach, aim, verdict) of every line that has oneDNN or a goal."""
    for line in table.lines:
        goals = line.goals or (("oneDNN", 0, 0),)
        for goal in goals:
            if goal[0] in line.ratios:
                peer = "" if goal[0] == "oneDNN" else f", of {goal[0]}"
                label = f"{line.work} {line.shape}, {line.threads} thread{'s' * (line.threads > 1)}{peer}"
                yield label, line.ratios[goal[0]][0], goal[1], goal[2], verdict(line, goal) if line.goals else ""


def picture(table):
    """A bar for each ratio, ticks where it should reach; all on one scale from 0."""
    rows = list(bars(table))
    high = max([1.0] + [value for _, value, _, _, _ in rows] + [aim for _, _, _, aim, _ in rows if aim <= 3])
    height = TOP + len(rows) * (BAR + GAP) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 70} {height}" '
           f'font-family="sans-serif" font-size="11"><rect width="{LEFT + WIDTH + 70}" height="{height}" '
           f'fill="white"/><text x="16" y="24" font-size="15">Products on the CPU beside oneDNN\'s bf16 product'
           f'</text><text x="16" y="42" fill="#5c6b78">{table.machine}, {table.date}, commit {table.commit}</text>'
           f'<text x="16" y="58" fill="#5c6b78">Time of the peer over ours.  Thin ticks: to reach, to aim at; green: '
           f'aim, blue: reach, orange: neither, grey: no goal.</text>']

    def x(value):
        return LEFT + value / high * WIDTH
    for number, (label, value, reach, aim, what) in enumerate(rows):
        y = TOP + number * (BAR + GAP)
        out.append(f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{label}</text>'
                   f'<rect x="{LEFT}" y="{y}" width="{max(x(value) - LEFT, 0.5):.1f}" height="{BAR}" '
                   f'fill="{COLOURS[what]}"/><text x="{x(value) + 5:.1f}" y="{y + 10}">{value:.2f}</text>')
        out += [f'<path d="M{x(mark):.1f} {y - 2}v{BAR + 4}" stroke="#1f2933"/>' for mark in (reach, aim)
                if 0 < mark <= high]
    bottom = TOP + len(rows) * (BAR + GAP)
    out.append(f'<path d="M{x(1):.1f} {TOP - 6}V{bottom}" stroke="#1f2933" stroke-dasharray="3 3"/>'
               f'<text x="{x(1):.1f}" y="{bottom + 14}" text-anchor="middle">1</text>')
    return "\n".join(out) + "\n</svg>\n"


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
