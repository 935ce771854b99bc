// Asks the collector once a second for hosts and for the series that the filter names, keeps the last
// five minutes of them, and draws. A counter is drawn as its rate, a histogram as its p50 and p99.
(function () {
  'use strict';
  const TURN_MS = 1000, KEEP_MS = 300000, MOST_PICTURES = 24;
  const at = (id) => document.getElementById(id);
  const short = (x) => {
    if (x === null || x === undefined) return '-';
    const a = Math.abs(x);
    for (const [size, name] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
      if (a >= size) return +(x / (name === 'k' ? 1e3 : size)).toPrecision(3) + name;
    }
    return +x.toPrecision(4) + '';
  };
  const escape = (text) => String(text).replace(/[&<>]/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'}[c]));
  let colour = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['ink', 'soft', 'line', 'paper', 'clear', 'limit', 'c1', 'c3']) {
      colour[name] = style.getPropertyValue('--' + name).trim();
    }
  };

  const kept = new Map();      // id -> {points: [[ms, value, p99]], last: {value, time}}
  const pictures = new Map();  // id -> {element, chart}
  const mapped = new Map();    // host -> {value, ms}: of the metric that colours the map
  let rates = {};              // host -> its number now
  let before = null;           // counts of the last turn
  const map = echarts.init(at('map'), null, {renderer: 'svg'});

  const remember = (one) => {
    const ms = one.time_ns / 1e6;
    let entry = kept.get(one.id);
    if (!entry) kept.set(one.id, entry = {points: [], last: null});
    const last = entry.last;
    entry.unit = one.unit + (one.kind === 2 ? '' : one.kind === 1 ? '/s' : '');
    entry.kind = one.kind;
    entry.help = one.help;
    if (!last || ms > last.ms) {
      if (one.kind === 2) entry.points.push([ms, one.value]);
      if (one.kind === 3) entry.points.push([ms, one.p50, one.p99]);
      // A counter that goes back was started anew: no rate is known of that moment.
      if (one.kind === 1 && last) {
        entry.points.push([ms, one.value >= last.value ? (one.value - last.value) / (ms - last.ms) * 1000 : null]);
      }
      entry.last = {value: one.value, ms};
    }
    while (entry.points.length && entry.points[0][0] < ms - KEEP_MS) entry.points.shift();
    entry.seen = true;
  };

  const drawCards = (data) => {
    const up = data.hosts.filter((h) => h.up).length;
    const ms = Date.now();
    const rate = before ? (data.counts.samples - before.samples) / (ms - before.ms) * 1000 : null;
    before = {samples: data.counts.samples, ms};
    const card = (tone, value, note) => '<div class="card ' + tone + '"><div class="value">' + escape(value) +
      '</div><div class="note">' + escape(note) + '</div></div>';
    at('cards').innerHTML = card(up === data.hosts.length ? 'good' : 'bad', up + ' of ' + data.hosts.length, 'hosts are read') +
      card('', short(rate), 'samples a second') +
      card(data.counts.lost ? 'bad' : 'good', short(data.counts.lost), 'samples lost') +
      card(data.counts.late ? 'warn' : 'good', short(data.counts.late), 'looks that came late') +
      card('', short(data.counts.gaps), 'gaps');
  };

  // One cell a host, row by row.
  const drawMap = (data) => {
    const columns = Math.max(1, Math.min(data.hosts.length, Math.ceil(Math.sqrt(data.hosts.length * 4))));
    const chosen = at('mapped').value;
    if (data.map) {
      rates = {};
      for (const [host, value] of Object.entries(data.map.values)) {
        const last = mapped.get(host), ms = Date.now();
        if (!data.map.rate) rates[host] = value;
        if (data.map.rate && last && value >= last.value) rates[host] = (value - last.value) / (ms - last.ms) * 1000;
        mapped.set(host, {value, ms});
      }
    }
    const number = (h) => chosen ? (rates[h.name] === undefined ? null : rates[h.name]) : (h.up ? 1 : 0);
    const cells = data.hosts.map((h, i) => [i % columns, Math.floor(i / columns), h.up ? number(h) : null, i]);
    const values = cells.map((c) => c[2]).filter((v) => v !== null);
    const down = cells.filter((c) => !data.hosts[c[3]].up).map((c) => ({value: [c[0], c[1], 0, c[3]],
      itemStyle: {color: colour.limit}}));
    const unit = data.map ? data.map.unit + (data.map.rate ? '/s' : '') : '';
    const axis = {type: 'category', show: false};
    map.setOption({
      animation: false, grid: {left: 4, right: chosen ? 70 : 4, top: 4, bottom: 4},
      xAxis: Object.assign({data: [...Array(columns).keys()]}, axis),
      yAxis: Object.assign({inverse: true, data: [...Array(Math.ceil(data.hosts.length / columns)).keys()]}, axis),
      visualMap: {show: Boolean(chosen), min: chosen ? Math.min(0, ...values) : 0, max: chosen ? Math.max(1e-12, ...values) : 1,
        right: 0, top: 'middle', itemHeight: 160, seriesIndex: 0, dimension: 2, textStyle: {color: colour.soft, fontSize: 11}, formatter: short,
        inRange: {color: chosen ? ['#f7fbff', '#6baed6', '#08306b'] : [colour.limit, colour.clear]}},
      tooltip: {confine: true, backgroundColor: colour.paper, borderColor: colour.line, textStyle: {fontSize: 12, color: colour.ink},
        formatter: (p) => { const h = data.hosts[p.value[3]];
          return '<b>' + escape(h.name) + '</b><br>' + (h.up ? (chosen ? short(number(h)) + ' ' + escape(unit) : 'is read each ' +
            h.interval_ns / 1e6 + ' ms') : escape(h.reason)); }},
      series: [{type: 'heatmap', progressive: 0, data: cells.filter((c) => data.hosts[c[3]].up && c[2] !== null),
        itemStyle: {borderColor: colour.paper, borderWidth: 1}},
      {type: 'heatmap', progressive: 0, data: down, itemStyle: {borderColor: colour.paper, borderWidth: 1}}]
    }, true);
    const lost = data.hosts.filter((h) => !h.up);
    at('down').hidden = lost.length === 0;
    at('down').tBodies[0].innerHTML = lost.slice(0, 50).map((h) => '<tr><td>' + escape(h.name) + '</td><td>' + escape(h.reason) +
      '</td></tr>').join('');
  };

  const pictureOf = (id) => {
    let picture = pictures.get(id);
    if (picture) return picture;
    const element = document.createElement('div');
    element.className = 'line';
    element.innerHTML = '<h3></h3><div class="now"></div><div class="picture"></div>';
    element.firstChild.textContent = id;
    at('lines').append(element);
    picture = {element, chart: echarts.init(element.lastChild, null, {renderer: 'svg'})};
    pictures.set(id, picture);
    return picture;
  };

  const drawLine = (id) => {
    const entry = kept.get(id), {element, chart} = pictureOf(id);
    const last = entry.points[entry.points.length - 1];
    element.title = entry.help || '';
    element.children[1].textContent = !last ? 'waiting for a second sample'
      : entry.kind === 3 ? 'p50 ' + short(last[1]) + ', p99 ' + short(last[2]) + ' ' + entry.unit : short(last[1]) + ' ' + entry.unit;
    const line = (name, column, stroke) => ({name, type: 'line', symbol: 'none', lineStyle: {width: 1.6, color: stroke},
      itemStyle: {color: stroke}, data: entry.points.map((p) => [p[0], p[column]])});
    chart.setOption({
      animation: false, grid: {left: 52, right: 8, top: 10, bottom: 22},
      xAxis: {type: 'time', axisLabel: {color: colour.soft, fontSize: 10, hideOverlap: true}, splitLine: {show: false}},
      yAxis: {type: 'value', scale: entry.kind !== 1, splitNumber: 3, axisLabel: {color: colour.soft, fontSize: 10, formatter: short},
        splitLine: {lineStyle: {color: colour.line}}},
      tooltip: {trigger: 'axis', confine: true, valueFormatter: short, textStyle: {fontSize: 12}},
      series: entry.kind === 3 ? [line('p50', 1, colour.c1), line('p99', 2, colour.c3)] : [line(id, 1, colour.c1)]
    }, true);
  };

  const drawLines = (data) => {
    const shown = data.series.slice(0, MOST_PICTURES).map((s) => s.id);
    for (const [id, picture] of pictures) {
      if (shown.includes(id)) continue;
      picture.chart.dispose();
      picture.element.remove();
      pictures.delete(id);
    }
    shown.forEach(drawLine);
    const more = data.series.length - shown.length + data.left_out;
    at('note').textContent = more ? more + ' more series; narrow the filter' : '';
  };

  const offer = (data) => {
    const known = new Set([...at('mapped').options].map((o) => o.value));
    for (const one of data.series) {
      if (known.has(one.name)) continue;
      known.add(one.name);
      at('mapped').append(new Option(one.name, one.name));
    }
  };

  const turn = async () => {
    try {
      const query = new URLSearchParams({host: at('host').value || '*', metric: at('metric').value || '*', map: at('mapped').value});
      const data = await (await fetch('live?' + query)).json();
      readColours();
      for (const entry of kept.values()) entry.seen = false;
      data.series.forEach(remember);
      for (const [id, entry] of kept) if (!entry.seen) kept.delete(id);
      drawCards(data);
      offer(data);
      drawMap(data);
      drawLines(data);
      const root = document.documentElement.dataset;
      root.turns = +(root.turns || 0) + 1;
      root.charts = pictures.size;
    } catch (error) {
      at('cards').innerHTML = '<div class="card bad"><div class="value">the collector is not reached</div><div class="note">' +
        escape(error) + '</div></div>';
    }
    setTimeout(turn, TURN_MS);
  };
  at('filter').addEventListener('submit', (event) => event.preventDefault());
  at('mapped').addEventListener('change', () => { mapped.clear(); rates = {}; });
  window.addEventListener('resize', () => { map.resize(); pictures.forEach((p) => p.chart.resize()); });
  turn();
})();
