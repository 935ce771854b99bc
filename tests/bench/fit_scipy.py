"""Fits one problem of fit_bench by scipy.optimize.curve_fit and prints the CPU seconds of the fit.

A line of the problem: output (0 bandwidth, 1 latency), four hops' masks, bytes, QPs, value. The law is
docs/models/pipeline.md, in numpy, as far as these settings reach."""
import sys
import time

import numpy as np
from scipy.optimize import curve_fit

data = np.loadtxt(sys.argv[1])
output, ce, sd, se, cd, size, qps, value = data.T
packets = np.maximum(1, np.ceil(size / 1024))
START = np.log([180, 230, 150, 8, 80, 32, 36, 36, 0.4, 90, 140, 2.5, 0.5, 0.1, 0.3])


def smooth_max(times, p=12.0):
    top = np.max(times, axis=0)
    return top * np.sum((np.array(times) / top) ** p, axis=0) ** (1 / p)


def one_way(e, d, v):
    line, pcie, post, message, unit, ep, dp, window, stage, encap, decap, base, fetch, byte, gap = v
    we, wd = e * encap * 1e-3, d * decap * 1e-3
    t = we + wd + byte * 1e-3 * np.minimum(size, 4096) + fetch * (size > 100)
    slowed = (unit + e) * 1e-3
    arriving = slowed * (packets - 4)
    hold = gap + np.maximum(we, wd)
    wait = hold - 0.5 * np.minimum(arriving, hold)
    one = np.ones_like(size)
    pace = smooth_max([slowed, (stage + we) / ep, (stage + wd) / dp,
                       (stage + we + wd) / window, 1156 * 8e-3 / line * one])
    backlog = np.maximum(0, packets - window) * (pace - slowed)
    return t + np.where(packets > 4, arriving + np.maximum(wait, backlog), 0)


def law(_, *logs):
    v = np.exp(np.clip(logs, -30, 30))
    line, pcie, post, message, unit, ep, dp, window, stage, encap, decap, base, fetch, byte, gap = v
    we, wd = ce * encap * 1e-3, sd * decap * 1e-3
    one = np.ones_like(size)
    back = (se * encap + cd * decap) * 1e-3
    busy = smooth_max([(size + 132 * packets) * 8e-3 / line + 0.003,
                       (2.1 * base + we + wd + back) / (qps * 128), size * 8e-3 / pcie, post * 1e-3 * one,
                       message * 1e-3 * one, (unit + ce) * packets * 1e-3 / qps,
                       packets * (stage + we + wd) / window / qps, packets * (stage + we) / ep,
                       packets * (stage + wd) / dp])
    latency = base + 0.5 * (one_way(ce, sd, v) + one_way(se, cd, v))
    return np.where(output == 0, np.log(size * 8e-3 / busy), np.log(latency))


begin = time.process_time()
try:
    curve_fit(law, output, np.log(value), p0=START, sigma=np.full(len(value), 0.02), maxfev=20000)
except RuntimeError:
    print(-1)
    sys.exit()
print(time.process_time() - begin)
