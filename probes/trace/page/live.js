// The page of `greynic trace run --serve`: the newest state each second, or that of the time which the slider names.
'use strict';
const byId = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const digits = (value) => (value === null ? '–' : value >= 100 ? value.toFixed(0) : value.toFixed(2));
const drawings = {};
const drawing = (id) => (drawings[id] ??= echarts.init(byId(id)));
let travelling = false;

function cell(row, text, number) {
  const made = row.insertCell();
  made.textContent = text;
  if (number) made.className = 'number';
}

// Places are columns, in the order in which packets reach them; their devices stand below each other.
function draw(state) {
  const rate = (count) => (state.seconds > 0 ? count / state.seconds : count);
  const places = new Map();
  const place = (label) => {
    if (!label) return;
    const name = label.slice(0, label.lastIndexOf('/'));
    if (!places.has(name)) places.set(name, []);
    if (!places.get(name).includes(label)) places.get(name).push(label);
  };
  for (const edge of state.edges) { place(edge.from); place(edge.to); }
  const nodes = [];
  [...places].forEach(([name, devices], column) => devices.forEach((label, row) => nodes.push({
    name: label, x: column * 260, y: row * 110 + (column % 2) * 40, symbolSize: 16,
    itemStyle: { color: colour(`--c${column % 6}`) }, label: { show: true, position: 'top', color: colour('--ink') },
  })));
  const whole = state.edges.filter((edge) => edge.from && edge.to);
  drawing('topology').setOption({
    animation: false,
    series: [{
      type: 'graph', layout: 'none', roam: true, nodes, edgeSymbol: ['none', 'arrow'],
      edgeLabel: { show: true, fontSize: 11, color: colour('--soft'), formatter: (item) => item.data.text },
      edges: whole.map((edge) => ({
        source: edge.from, target: edge.to, text: `${digits(edge.p50_us)} / ${digits(edge.p99_us)} µs` +
          (edge.lost > 0 ? `, ${edge.lost} lost` : ''),
        lineStyle: { curveness: 0.2, width: edge.packets > 0 ? 2 : 1, color: colour(edge.lost > 0 ? '--limit' : '--before') },
      })),
    }],
  });
  const rows = byId('hops');
  rows.textContent = '';
  for (const edge of state.edges) {
    const row = rows.insertRow();
    cell(row, edge.from || '–');
    cell(row, edge.to || '–');
    for (const value of [rate(edge.packets), rate(edge.lost), edge.p50_us, edge.p99_us]) cell(row, digits(value), true);
  }
  const containers = byId('containers');
  containers.textContent = '';
  for (const one of state.containers) {
    const row = containers.insertRow();
    cell(row, one.container);
    for (const value of [one.cpus, one.throttled, one.memory_bytes === null ? null : one.memory_bytes / 2 ** 20]) {
      cell(row, digits(value), true);
    }
  }
  byId('used').hidden = state.containers.length === 0;
  const card = (label, value) => {
    const made = document.createElement('div');
    made.className = 'card';
    for (const [kind, text] of [['label', label], ['value', value]]) {
      const part = made.appendChild(document.createElement('div'));
      part.className = kind;
      part.textContent = text;
    }
    return made;
  };
  byId('cards').replaceChildren(card('one packet followed of', state.one_in), card('events that are missing', state.events_lost));
  const slider = byId('time');
  slider.min = state.first_ms;
  slider.max = state.last_ms;
  if (!travelling) slider.value = state.last_ms;
  byId('when').textContent = travelling ? new Date(state.time_ms).toLocaleTimeString() : 'live';
}

function waterfall(journey) {
  const names = journey.points.map((point, i) => `${i + 1} ${point.point}${point.lost ? ` lost: ${point.lost}` : ''}`);
  const starts = journey.points.map((point, i) => (i === 0 ? 0 : journey.points[i - 1].us));
  drawing('waterfall').setOption({
    animation: false,
    grid: { left: 8, right: 40, top: 8, bottom: 30, containLabel: true },
    xAxis: { type: 'value', name: 'µs' },
    yAxis: { type: 'category', inverse: true, data: names },
    series: [
      { type: 'bar', stack: 'way', silent: true, itemStyle: { color: 'transparent' }, data: starts },
      { type: 'bar', stack: 'way', label: { show: true, position: 'right', formatter: (bar) => digits(bar.value) },
        itemStyle: { color: colour('--c1') }, data: journey.points.map((point, i) => point.us - starts[i]) },
    ],
  }, true);
}

let kept = [];
async function showJourneys() {
  kept = await (await fetch('journeys')).json();
  const list = byId('journeys');
  const chosen = list.value;
  list.replaceChildren(...kept.map((journey) => new Option(
    `${journey.flow}: ${digits(journey.points.at(-1).us)} µs, packet ${journey.journey}`, journey.journey)));
  if (kept.some((journey) => String(journey.journey) === chosen)) list.value = chosen;
  for (const id of ['journeys', 'waterfall']) byId(id).hidden = kept.length === 0;
  byId('none').hidden = kept.length > 0;
  const journey = kept.find((one) => String(one.journey) === list.value);
  if (journey) waterfall(journey);
}

byId('journeys').addEventListener('change', showJourneys);
byId('time').addEventListener('input', async () => {
  const slider = byId('time');
  travelling = Number(slider.value) < Number(slider.max) - 1500;
  draw(await (await fetch(travelling ? `state?at_ms=${slider.value}` : 'state')).json());
});
window.addEventListener('resize', () => Object.values(drawings).forEach((one) => one.resize()));
async function follow() {
  try {
    const state = await (await fetch('state')).json();
    if (state.edges && !travelling) draw(state);
    if (state.edges) await showJourneys();
  } catch {
    byId('when').textContent = 'greynic has ended: this is the last that it told';
    return;
  }
  setTimeout(follow, 1000);
}
follow();
