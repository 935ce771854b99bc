// Draws the charts that the page describes in <script id="charts">: one entry for each element with
// data-chart. Every number drawn here stands in a table of the page too.
(function () {
  'use strict';
  const INK = '#16202c', SOFT = '#5a6a7c', LINE = '#e2e8ef', BLUE = '#1f6feb', GREEN = '#2a9d6f';
  const CAUSES = ['#e4572e', '#8e44ad', '#f0a202', '#b5179e', '#d1495b', '#7f5539'];
  const WALL = '#9aa5b1';
  const SERIES = ['#1f6feb', '#e4572e', '#8e44ad', '#f0a202', '#2a9d6f', '#b5179e'];

  const short = (x) => {
    if (typeof x !== 'number') return x;
    const a = Math.abs(x);
    if (a >= 1e6) return +(x / 1e6).toPrecision(3) + 'M';
    if (a >= 1e4) return +(x / 1e3).toPrecision(3) + 'k';
    return +x.toPrecision(4);
  };
  const percent = (x) => +(x * 100).toPrecision(3) + ' %';
  const span = (row) => short(row[0]) + ' [' + short(row[1]) + ', ' + short(row[2]) + ']';
  const escape = (text) => String(text).replace(/[&<>]/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'}[c]));
  const wrap = (text) => escape(text).split(', ').join('<br>');

  const base = {
    animation: false,
    textStyle: {color: INK, fontFamily: 'Inter, "Segoe UI", Arial, "DejaVu Sans", sans-serif'},
    grid: {left: 64, right: 20, top: 36, bottom: 44},
    tooltip: {confine: true, borderColor: LINE, textStyle: {fontSize: 12, color: INK}}
  };
  const axis = (name, more) => Object.assign({
    type: 'value', name, nameTextStyle: {color: SOFT, align: 'left', fontSize: 12}, nameGap: 14,
    axisLabel: {color: SOFT, formatter: short, hideOverlap: true}, splitLine: {lineStyle: {color: LINE}},
    axisLine: {lineStyle: {color: LINE}}
  }, more);
  const below = (name, more) => axis(name, Object.assign(
      {nameLocation: 'middle', nameGap: 26, nameTextStyle: {color: SOFT, fontSize: 12}}, more));

  // Whiskers from low to high; rows are [x, low, high] in axis units.
  const whiskers = (rows, color, width) => ({
    type: 'custom', silent: true, z: 5, data: rows, encode: {x: 0, y: [1, 2]},
    renderItem: (params, api) => {
      const a = api.coord([api.value(0), api.value(1)]), b = api.coord([api.value(0), api.value(2)]);
      const line = (x1, y1, x2, y2) =>
        ({type: 'line', shape: {x1, y1, x2, y2}, style: {stroke: color, lineWidth: 1.2}});
      return {type: 'group', children: [
        line(a[0], a[1], b[0], b[1]), line(a[0] - width, a[1], a[0] + width, a[1]),
        line(b[0] - width, b[1], b[0] + width, b[1])]};
    }
  });

  // A band between two lines: the lower one invisible, the difference stacked on it.
  const band = (x, low, high, color) => [
    {type: 'line', data: x.map((v, i) => [v, low[i]]), lineStyle: {opacity: 0}, stack: 'band', symbol: 'none', silent: true},
    {type: 'line', data: x.map((v, i) => [v, high[i] - low[i]]), lineStyle: {opacity: 0}, stack: 'band', symbol: 'none',
      silent: true, areaStyle: {color, opacity: 0.16}}
  ];

  const mark = (value, name, color) => ({yAxis: value, name,
    lineStyle: {color, type: 'dashed', width: 1.4},
    label: {formatter: name, color, position: 'insideEndTop', fontSize: 11}});

  const draw = {
    walls: (d) => {
      const clear = d.judged ? 'clear' : 'not judged';
      const group = (cause) => cause === -2 ? clear : cause === -1 ? 'wall without a cause' : 'wall, cause ' + (cause + 1);
      const color = (cause) => cause === -2 ? (d.judged ? GREEN : BLUE) : cause === -1 ? WALL : CAUSES[cause % CAUSES.length];
      const causes = [...new Set(d.rows.map((r) => r[4]))].sort((a, b) => a - b);
      const lines = [];
      if (d.baseline !== null) lines.push(mark(d.baseline, 'baseline', SOFT));
      if (d.bound !== null) lines.push(mark(d.bound, 'wall', '#c0392b'));
      return {
        legend: {top: 0, right: 10, data: causes.map(group), textStyle: {color: SOFT}},
        xAxis: below('configurations, best first', {type: 'category', data: d.rows.map((r, i) => i + 1), splitLine: {show: false}}),
        yAxis: axis(d.axis, {min: 0}),
        tooltip: Object.assign({}, base.tooltip, {formatter: (p) => {
          const r = d.rows[p.data[0]];
          return '<b>' + span(r.slice(1, 4)) + '</b><br>' + group(r[4]) + '<br>' + wrap(r[0]);
        }}),
        series: causes.map((cause, k) => ({
          name: group(cause), type: 'bar', stack: 'one', itemStyle: {color: color(cause), borderRadius: [3, 3, 0, 0]},
          barMaxWidth: 34, data: d.rows.map((r, i) => r[4] === cause ? [i, r[1]] : null).filter(Boolean),
          markLine: k === 0 ? {symbol: 'none', silent: true, data: lines} : undefined
        })).concat([whiskers(d.rows.map((r, i) => [i, r[2], r[3]]), INK, 4)])
      };
    },

    evidence: (d) => ({
      grid: {left: 260, right: 30, top: 16, bottom: 44},
      xAxis: below(d.axis, {min: 0, axisLabel: {color: SOFT, formatter: percent}}),
      yAxis: {type: 'category', inverse: true, data: d.rows.map((r) => r[0]),
        axisLabel: {color: SOFT, width: 240, overflow: 'truncate'}, axisTick: {show: false}, axisLine: {lineStyle: {color: LINE}}},
      tooltip: Object.assign({}, base.tooltip, {formatter: (p) => {
        const r = d.rows[p.dataIndex];
        return escape(r[0]) + '<br><b>' + percent(r[1]) + '</b> [' + percent(r[2]) + ', ' + percent(r[3]) + ']';
      }}),
      series: [
        {type: 'bar', barMaxWidth: 16, data: d.rows.map((r) => ({value: r[1], itemStyle: {color: r[4] ? CAUSES[0] : GREEN, borderRadius: 3}})),
          markLine: {symbol: 'none', silent: true, data: [{xAxis: 1, lineStyle: {color: SOFT, type: 'dashed'}, label: {formatter: 'expected', color: SOFT, fontSize: 11}}]}},
        {type: 'custom', silent: true, z: 5, data: d.rows.map((r, i) => [r[2], r[3], i]), encode: {x: [0, 1], y: 2},
          renderItem: (params, api) => {
            const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), api.value(2)]);
            return {type: 'line', shape: {x1: a[0], y1: a[1], x2: b[0], y2: b[1]}, style: {stroke: INK, lineWidth: 1.4}};
          }}
      ]
    }),

    effect: (d) => ({
      grid: {left: 56, right: 14, top: 34, bottom: 30},
      xAxis: {type: 'category', data: d.means.map((m) => m[0]), axisLabel: {color: SOFT, hideOverlap: true},
        axisLine: {lineStyle: {color: LINE}}, axisTick: {show: false}},
      yAxis: axis(d.axis, {min: 0}),
      tooltip: Object.assign({}, base.tooltip, {formatter: (p) => p.seriesType === 'line'
        ? escape(d.means[p.dataIndex][0]) + ': <b>' + span(d.means[p.dataIndex].slice(1)) + '</b>'
        : escape(d.means[p.data[0]][0]) + ': ' + short(p.data[1])}),
      series: [
        {type: 'scatter', symbolSize: 6, data: d.dots, itemStyle: {color: BLUE, opacity: 0.28}},
        {type: 'line', data: d.means.map((m, i) => [i, m[1]]), symbol: 'circle', symbolSize: 7,
          itemStyle: {color: BLUE}, lineStyle: {color: BLUE, width: 2, opacity: d.numeric ? 1 : 0}, z: 4},
        whiskers(d.means.map((m, i) => [i, Math.max(0, m[2]), m[3]]), BLUE, 5)
      ]
    }),

    quantiles: (d) => {
      // Each further nine takes the same room.
      const stretch = (q) => -Math.log10(1 - q);
      return {
        legend: {top: 0, right: 10, textStyle: {color: SOFT, fontSize: 12}},
        xAxis: below('percentile', {min: 0, max: 4, interval: 1, axisLabel: {color: SOFT,
          formatter: (v) => ['0', '90', '99', '99.9', '99.99'][v] || ''}}),
        yAxis: axis(d.axis, {min: 0}),
        tooltip: Object.assign({}, base.tooltip, {formatter: (p) =>
          escape(p.seriesName) + '<br>' + wrap(d.series[p.seriesIndex].settings) + '<br>p' + +(100 * (1 - Math.pow(10, -p.data[0]))).toPrecision(6) + ': <b>' + short(p.data[1]) + '</b>'}),
        series: d.series.map((s, i) => ({name: s.name, type: 'line', symbolSize: 5, color: SERIES[i % SERIES.length],
          lineStyle: {width: 2, type: s.name === 'baseline' ? 'dashed' : 'solid'}, data: s.points.map((p) => [stretch(p[0]), p[1]])}))
      };
    },

    predicted: (d) => {
      const all = d.points.flatMap((p) => [p[0], p[1]]);
      const least = Math.min(...all), most = Math.max(...all);
      return {
        grid: {left: 62, right: 16, top: 34, bottom: 44},
        xAxis: below('measured ' + d.axis, {scale: true}), yAxis: axis('predicted', {scale: true}),
        tooltip: Object.assign({}, base.tooltip, {formatter: (p) => {
          const r = d.points[p.dataIndex];
          return 'measured <b>' + short(r[0]) + '</b><br>predicted ' + span(r.slice(1, 4)) + (r[5] ? ' (extrapolated)' : '') + '<br>' + wrap(r[4]);
        }}),
        series: [
          {type: 'line', silent: true, symbol: 'none', data: [[least, least], [most, most]], lineStyle: {color: SOFT, type: 'dashed', width: 1}},
          whiskers(d.points.map((p) => [p[0], p[2], p[3]]), '#a9bfdd', 2),
          {type: 'scatter', symbolSize: 7, z: 6, data: d.points.map((p) => ({value: [p[0], p[1]], itemStyle: {color: p[5] ? CAUSES[2] : BLUE}}))}
        ]
      };
    },

    residuals: (d) => ({
      grid: {left: 62, right: 16, top: 34, bottom: 44},
      xAxis: below('predicted ' + d.axis, {scale: true}),
      yAxis: axis('residual', {axisLabel: {color: SOFT, formatter: percent}}),
      tooltip: Object.assign({}, base.tooltip, {formatter: (p) => '<b>' + percent(p.data.value[1]) + '</b><br>' + wrap(d.points[p.dataIndex][4])}),
      series: [
        whiskers(d.points.map((p) => [p[1], p[2] / p[1] - 1, p[3] / p[1] - 1]), '#d5dfec', 2),
        {type: 'scatter', symbolSize: 7, z: 6, data: d.points.map((p) => ({value: [p[1], p[0] / p[1] - 1],
          itemStyle: {color: p[0] < p[2] || p[0] > p[3] ? CAUSES[0] : BLUE}})),
          markLine: {symbol: 'none', silent: true, data: [{yAxis: 0, lineStyle: {color: SOFT, type: 'dashed'}, label: {show: false}}]}}
      ]
    }),

    law: (d) => ({
      grid: {left: 56, right: 16, top: 34, bottom: 30},
      xAxis: axis('', {type: d.log ? 'log' : 'value', min: d.curve[0][0], max: d.curve[d.curve.length - 1][0], splitLine: {show: false}}),
      yAxis: axis(d.axis, {min: 0}),
      tooltip: Object.assign({}, base.tooltip, {formatter: (p) => p.seriesType === 'scatter'
        ? 'measured at ' + short(p.data[0]) + ': <b>' + short(p.data[1]) + '</b>'
        : 'law at ' + short(p.data[0]) + ': <b>' + short(p.data[1]) + '</b>'}),
      series: band(d.curve.map((c) => c[0]), d.curve.map((c) => c[2]), d.curve.map((c) => c[3]), BLUE).concat([
        {type: 'line', data: d.curve.map((c) => [c[0], c[1]]), symbol: 'none', lineStyle: {color: BLUE, width: 2.2}},
        {type: 'scatter', data: d.data.map((p) => [p[0], p[1]]), symbolSize: 8, itemStyle: {color: CAUSES[0]}, z: 6},
        whiskers(d.data.map((p) => [p[0], p[2], p[3]]), CAUSES[0], 4)
      ])
    }),

    surface: (d) => {
      const values = d.cells.map((c) => c[2]);
      return {
        grid: {left: 62, right: 92, top: 34, bottom: 44},
        xAxis: below(d.x_name, {type: 'category', data: d.x.map(short), splitLine: {show: false}}),
        yAxis: axis(d.y_name, {type: 'category', data: d.y.map(short), splitLine: {show: false}}),
        visualMap: {min: Math.min(...values), max: Math.max(...values), calculable: false, orient: 'vertical',
          right: 4, top: 'middle', itemHeight: 120, text: [short(Math.max(...values)), short(Math.min(...values))],
          textStyle: {color: SOFT, fontSize: 11}, inRange: {color: ['#b2182b', '#f4a582', '#f7f7f7', '#92c5de', '#2166ac']}},
        tooltip: Object.assign({}, base.tooltip, {formatter: (p) => escape(d.x_name) + ' ' + short(d.x[p.data[0]]) + ', ' +
          escape(d.y_name) + ' ' + short(d.y[p.data[1]]) + '<br>' + escape(d.axis) + ' <b>' + short(p.data[2]) + '</b>'}),
        series: [{type: 'heatmap', data: d.cells, progressive: 0}]
      };
    },

    walk: (d) => ({
      legend: {top: 0, right: 10, textStyle: {color: SOFT}},
      xAxis: below('matchers walked', {minInterval: 1}),
      yAxis: axis('decided', {min: 0, max: 1, axisLabel: {color: SOFT, formatter: percent}}),
      tooltip: Object.assign({}, base.tooltip, {trigger: 'axis', valueFormatter: percent}),
      series: d.series.map((s) => ({name: s.name, type: 'line', step: 'end', symbol: 'none', data: s.points,
        color: s.name === 'before' ? WALL : GREEN, lineStyle: {width: 2.4}, areaStyle: {opacity: 0.08}}))
    }),

    gain: (d) => ({
      xAxis: {type: 'category', data: d.rows.map((r) => r[0]), axisLabel: {color: SOFT}, axisLine: {lineStyle: {color: LINE}}},
      yAxis: axis(d.axis, {min: 0}),
      tooltip: Object.assign({}, base.tooltip, {formatter: (p) => escape(d.rows[p.dataIndex][0]) + ': <b>' + span(d.rows[p.dataIndex].slice(1)) + '</b>'}),
      series: [
        {type: 'bar', barMaxWidth: 70, data: d.rows.map((r) => ({value: r[1], itemStyle: {borderRadius: [4, 4, 0, 0],
          color: r[0] === 'before' ? WALL : r[0] === 'after' ? GREEN : BLUE}})),
          label: {show: true, position: 'top', formatter: (p) => short(p.value), color: INK}},
        whiskers(d.rows.map((r, i) => [i, r[2], r[3]]), INK, 6)
      ]
    })
  };

  const charts = JSON.parse(document.getElementById('charts').textContent);
  let drawn = 0;
  document.querySelectorAll('[data-chart]').forEach((element) => {
    const description = charts[+element.dataset.chart];
    const chart = echarts.init(element, null, {renderer: 'svg'});
    chart.setOption(Object.assign({}, base, draw[description.kind](description)));
    window.addEventListener('resize', () => chart.resize());
    window.addEventListener('beforeprint', () => chart.resize());
    drawn += 1;
  });
  // For whoever checks the page from outside: how many pictures there are, and how many were drawn.
  document.documentElement.dataset.chartsDrawn = drawn + '/' + charts.length;
})();
