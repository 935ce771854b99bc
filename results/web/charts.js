// Draws the charts that the page describes in <script id="charts">: one entry for each element with
// data-chart. Every number drawn here stands in a table of the page too. Pictures are drawn anew when
// the window's width, the colour scheme or the medium (paper) changes.
(function () {
  'use strict';
  const CAUSE_COLOURS = 6;
  let colour = {};  // by name of the variables in page.css
  let narrow = false;  // the picture that is drawn now is on a phone

  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['ink', 'soft', 'line', 'paper', 'clear', 'untested', 'beyond', 'unexplained', 'undecided', 'before',
      'limit', 'c0', 'c1', 'c2', 'c3', 'c4', 'c5']) colour[name] = style.getPropertyValue('--' + name).trim();
  };
  const causeColour = (cause) => colour['c' + cause % CAUSE_COLOURS];

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

  const base = () => ({
    animation: false,
    textStyle: {color: colour.ink, fontFamily: 'Inter, "Segoe UI", Arial, "DejaVu Sans", sans-serif'},
    grid: {left: narrow ? 46 : 64, right: narrow ? 10 : 20, top: 36, bottom: 44},
    tooltip: tip({})
  });
  const tip = (more) => Object.assign({confine: true, borderColor: colour.line, backgroundColor: colour.paper,
    textStyle: {fontSize: 12, color: colour.ink}}, more);
  const legend = (more) => Object.assign({top: 0, right: narrow ? 'auto' : 10, left: narrow ? 0 : 'auto', itemWidth: 22,
    textStyle: {color: colour.soft, fontSize: 12}}, more);
  // Room for a legend above the axis name; on a phone two names fit on a line.
  const underLegend = (names) => ({left: narrow ? 46 : 64, right: narrow ? 16 : 20, top: 34 + 24 * (narrow ? Math.ceil(names / 2) : 1),
    bottom: 44});
  const axis = (name, more) => Object.assign({
    type: 'value', name, nameTextStyle: {color: colour.soft, align: 'left', fontSize: 12}, nameGap: 14,
    axisLabel: {color: colour.soft, formatter: short, hideOverlap: true}, splitLine: {lineStyle: {color: colour.line}},
    axisLine: {lineStyle: {color: colour.line}}
  }, more);
  // The axis of a measure: {title, scale} as the table of measures in core/ has them.
  const measureAxis = (d) => axis(d.title, d.scale === 'log' ? {type: 'log'} : d.scale === 'share'
    ? {min: 0, axisLabel: {color: colour.soft, formatter: percent}} : {min: 0});
  const below = (name, more) => axis(name, Object.assign(
      {nameLocation: 'middle', nameGap: 26, nameTextStyle: {color: colour.soft, fontSize: 12}}, more));
  const plainLine = () => ({lineStyle: {color: colour.line}});

  // Whiskers from low to high; rows are [x, low, high] in axis units.
  const whiskers = (rows, stroke, width) => ({
    type: 'custom', silent: true, z: 5, data: rows, encode: {x: 0, y: [1, 2]},
    renderItem: (params, api) => {
      const a = api.coord([api.value(0), api.value(1)]), b = api.coord([api.value(0), api.value(2)]);
      const line = (x1, y1, x2, y2) =>
        ({type: 'line', shape: {x1, y1, x2, y2}, style: {stroke, lineWidth: 1.2}});
      return {type: 'group', children: [
        line(a[0], a[1], b[0], b[1]), line(a[0] - width, a[1], a[0] + width, a[1]),
        line(b[0] - width, b[1], b[0] + width, b[1])]};
    }
  });

  // A band between two lines: the lower one invisible, the difference stacked on it.
  const band = (x, low, high, fill) => [
    {type: 'line', data: x.map((v, i) => [v, low[i]]), lineStyle: {opacity: 0}, stack: 'band', symbol: 'none', silent: true},
    {type: 'line', data: x.map((v, i) => [v, high[i] - low[i]]), lineStyle: {opacity: 0}, stack: 'band', symbol: 'none',
      silent: true, areaStyle: {color: fill, opacity: 0.16}}
  ];

  const mark = (value, name, stroke) => ({yAxis: value, name,
    lineStyle: {color: stroke, type: 'dashed', width: 1.4},
    label: {formatter: name, color: stroke, position: 'insideEndTop', fontSize: 11}});

  // How a group of configurations looks. Colour is never alone: bars have patterns, points have shapes.
  const CROSS = 'path://M1,0 L5,4 L9,0 L10,1 L6,5 L10,9 L9,10 L5,6 L1,10 L0,9 L4,5 L0,1 Z';
  const SHAPES = ['triangle', 'rect', 'diamond', 'arrow', 'pin', 'roundRect'];
  const stripes = (rotation, gap, dash) => ({symbol: 'rect', rotation, dashArrayX: dash || [1, 0], dashArrayY: [2, gap],
    color: 'rgba(255, 255, 255, 0.6)'});
  // ECharts 6 fails on its own decal: 'none' when a chart is drawn again.
  const PLAIN = {color: 'transparent'};
  const CAUSE_PATTERNS = [stripes(-Math.PI / 4, 5), stripes(Math.PI / 4, 5), stripes(0, 4), stripes(Math.PI / 2, 4),
    stripes(-Math.PI / 4, 2), stripes(0, 4, [3, 3])];
  const hollow = (stroke) => ({color: colour.paper, borderColor: stroke, borderWidth: 1.6, borderType: 'dashed', decal: PLAIN});
  const look = (group) => ({
    clear: () => ({item: {color: colour.clear, decal: PLAIN}, shape: 'circle'}),
    cause: () => ({item: {color: causeColour(group.cause), decal: CAUSE_PATTERNS[group.cause % CAUSE_COLOURS]},
      shape: SHAPES[group.cause % CAUSE_COLOURS]}),
    unexplained: () => ({item: {color: colour.unexplained, decal: stripes(0, 2, [2, 2])}, shape: 'diamond'}),
    undecided: () => ({item: hollow(colour.undecided), shape: 'emptyCircle'}),
    beyond: () => ({item: {color: colour.beyond, decal: stripes(-Math.PI / 4, 5)}, shape: 'triangle'}),
    untested: () => ({item: {color: colour.untested, decal: PLAIN}, shape: 'circle'}),
    unmeasured: () => ({item: {color: colour.limit, decal: PLAIN}, shape: CROSS})
  }[group.role]());
  const patterns = {enabled: true, decal: {show: true}, label: {enabled: false}};

  const draw = {
    walls: (d) => {
      const lines = [];
      if (d.baseline !== null) lines.push(mark(d.baseline, d.baseline_name, colour.soft));
      if (d.bound !== null) lines.push(mark(d.bound, 'wall', colour.limit));
      const log = d.axis.scale === 'log';
      const least = Math.min(...d.rows.filter((r) => r[1] > 0).map((r) => r[1]));
      const series = d.groups.map((group, g) => {
        const {item, shape} = look(group);
        const rows = d.rows.map((r, i) => r[4] === g ? [i, r[1] === null ? (log ? least : 0) : r[1]] : null).filter(Boolean);
        const points = log || group.role === 'unmeasured';
        return Object.assign({name: group.name, data: rows, itemStyle: item}, points
          ? {type: 'scatter', symbol: shape, symbolSize: 10, z: 6}
          : {type: 'bar', stack: 'one', barMaxWidth: 34});
      });
      // Lines across need a series that is always there, whatever groups there are.
      series.push({type: 'line', data: [], markLine: {symbol: 'none', silent: true, data: lines}});
      const measured = d.rows.map((r, i) => [i, r[2], r[3]]).filter((r) => r[1] !== null);
      return {
        aria: patterns,
        grid: underLegend(d.groups.length),
        legend: legend({data: d.groups.map((group) => group.name)}),
        xAxis: below('configurations, ' + d.order, {type: 'category', data: d.rows.map((r, i) => i + 1), splitLine: {show: false}}),
        yAxis: measureAxis(d.axis),
        tooltip: tip({formatter: (p) => {
          const r = d.rows[p.data[0]];
          return (r[1] === null ? '' : '<b>' + span(r.slice(1, 4)) + '</b><br>') + escape(r[5]) + '<br>' + wrap(r[0]);
        }}),
        series: series.concat([whiskers(log ? measured.map((r) => [r[0], Math.max(r[1], least / 2), r[2]]) : measured,
          colour.ink, 4)])
      };
    },

    evidence: (d) => ({
      aria: patterns,
      grid: {left: narrow ? 120 : 250, right: narrow ? 14 : 30, top: 30, bottom: 44},
      xAxis: below(d.axis, {min: 0, axisLabel: {color: colour.soft, formatter: percent, hideOverlap: true}}),
      yAxis: {type: 'category', inverse: true, data: d.rows.map((r) => r[0]),
        axisLabel: Object.assign({color: colour.soft, interval: 0}, narrow ? {width: 114, overflow: 'break', fontSize: 9, lineHeight: 10}
          : {width: 240, overflow: 'truncate', fontSize: 12}),
        axisTick: {show: false}, axisLine: plainLine()},
      tooltip: tip({formatter: (p) => {
        const r = d.rows[p.dataIndex];
        return escape(r[0]) + ': ' + r[4] + '<br><b>' + percent(r[1]) + '</b> [' + percent(r[2]) + ', ' + percent(r[3]) + ']';
      }}),
      series: [
        {type: 'bar', barMaxWidth: 16,
          data: d.rows.map((r) => ({value: r[1], itemStyle: look({role: r[4] === 'wall' ? 'cause' : r[4], cause: r[5]}).item})),
          label: {show: !narrow, position: 'right', color: colour.soft, fontSize: 11, formatter: (p) => d.rows[p.dataIndex][4]},
          markLine: {symbol: 'none', silent: true, data: [{xAxis: 1, lineStyle: {color: colour.soft, type: 'dashed'},
            label: {formatter: 'expected', position: 'start', color: colour.soft, fontSize: 11}}]}},
        {type: 'custom', silent: true, z: 5, data: d.rows.map((r, i) => [r[2], r[3], i]), encode: {x: [0, 1], y: 2},
          renderItem: (params, api) => {
            const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), api.value(2)]);
            return {type: 'line', shape: {x1: a[0], y1: a[1], x2: b[0], y2: b[1]}, style: {stroke: colour.ink, lineWidth: 1.4}};
          }}
      ]
    }),

    // Stages in a row; on a phone, in a column.
    path: (d) => {
      const place = (i) => narrow ? {x: 0, y: 90 * i} : {x: 130 * i, y: 40 * (i % 2)};
      return {
        tooltip: tip({formatter: (p) => p.dataType === 'edge' ? escape(d.nodes[p.dataIndex + 1][0]) + ': '
          + (p.data.value === null ? 'not measured' : percent(p.data.value) + ' left')
          : escape(d.nodes[p.dataIndex][0]) + '<br>' + d.nodes[p.dataIndex][4].map(escape).join('<br>')}),
        series: [{type: 'graph', layout: 'none', roam: false, left: 50, right: 50, top: 60, bottom: 60,
          symbol: 'roundRect', symbolSize: [84, 34], edgeSymbol: ['none', 'arrow'], edgeSymbolSize: 8,
          data: d.nodes.map((n, i) => Object.assign(place(i), {name: n[0], label: {show: true, fontSize: 11,
            color: n[1] ? colour.paper : colour.ink},
            itemStyle: {color: n[1] ? colour.c0 : colour.paper, borderColor: n[3] ? colour.c0 : colour.soft,
              borderWidth: n[3] ? 3 : 1}})),
          links: d.nodes.slice(1).map((n, i) => ({source: i, target: i + 1, value: n[2],
            lineStyle: {color: colour.soft, width: 1.5}, label: {show: n[2] !== null, fontSize: 11, color: colour.ink,
              formatter: () => percent(n[2])}}))}]
      };
    },

    sensitivity: (d) => {
      const bars = (name, k, fill) => [
        {name, type: 'bar', barMaxWidth: 10, data: d.rows.map((r) => r[k][0]), itemStyle: {color: fill, decal: k === 1 ? PLAIN : stripes(0, 2, [2, 2])}},
        {type: 'custom', silent: true, z: 5, data: d.rows.map((r, i) => [r[k][1], r[k][2], i]), encode: {x: [0, 1], y: 2},
          renderItem: (params, api) => {
            const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), api.value(2)]);
            const y = a[1] + (k === 1 ? -6 : 6);
            return {type: 'line', shape: {x1: a[0], y1: y, x2: b[0], y2: y}, style: {stroke: colour.ink, lineWidth: 1.4}};
          }}];
      return {
        aria: patterns,
        legend: legend({data: ['first', 'total']}),
        grid: {left: narrow ? 120 : 180, right: 30, top: 34, bottom: 44},
        xAxis: below('share of the variance', {axisLabel: {color: colour.soft, formatter: percent, hideOverlap: true}}),
        yAxis: {type: 'category', inverse: true, data: d.rows.map((r) => r[0]), axisLabel: {color: colour.soft}, axisTick: {show: false},
          axisLine: plainLine()},
        tooltip: tip({formatter: (p) => escape(d.rows[p.dataIndex][0]) + '<br>first ' + span(d.rows[p.dataIndex][1])
          + '<br>total ' + span(d.rows[p.dataIndex][2])}),
        series: bars('first', 1, colour.untested).concat(bars('total', 2, colour.c0))
      };
    },

    effect: (d) => ({
      grid: {left: 56, right: 14, top: 34, bottom: 30},
      xAxis: {type: 'category', data: d.means.map((m) => m[0]), axisLabel: {color: colour.soft, hideOverlap: true},
        axisLine: plainLine(), axisTick: {show: false}},
      yAxis: measureAxis(d.axis),
      tooltip: tip({formatter: (p) => p.seriesType === 'line'
        ? escape(d.means[p.dataIndex][0]) + ': <b>' + span(d.means[p.dataIndex].slice(1)) + '</b>'
        : escape(d.means[p.data[0]][0]) + ': ' + short(p.data[1])}),
      series: [
        {type: 'scatter', symbolSize: 6, data: d.dots, itemStyle: {color: colour.untested, opacity: 0.35}},
        {type: 'line', data: d.means.map((m, i) => [i, m[1]]), symbol: 'circle', symbolSize: 7,
          itemStyle: {color: colour.untested}, lineStyle: {color: colour.untested, width: 2, opacity: d.numeric ? 1 : 0}, z: 4},
        // On a logarithmic axis a whisker cannot reach below zero: it ends at the least dot.
        whiskers(d.means.map((m, i) => [i, d.axis.scale === 'log' ? Math.max(Math.min(...d.dots.map((p) => p[1])), m[2])
          : Math.max(0, m[2]), m[3]]), colour.untested, 5)
      ]
    }),

    quantiles: (d) => {
      // Each further nine takes the same room.
      const stretch = (q) => -Math.log10(1 - q);
      const style = (s, i) => s.name === 'baseline' ? {color: colour.soft, symbol: 'circle', type: 'dashed'}
        : {color: causeColour(i), symbol: SHAPES[i % SHAPES.length], type: 'solid'};
      return {
        grid: underLegend(d.series.length),
        legend: legend({}),
        xAxis: below('percentile', {min: 0, max: 4, interval: 1, axisLabel: {color: colour.soft,
          formatter: (v) => ['0', '90', '99', '99.9', '99.99'][v] || ''}}),
        yAxis: measureAxis(d.axis),
        tooltip: tip({formatter: (p) =>
          escape(p.seriesName) + '<br>' + wrap(d.series[p.seriesIndex].settings) + '<br>p' + +(100 * (1 - Math.pow(10, -p.data[0]))).toPrecision(6) + ': <b>' + short(p.data[1]) + '</b>'}),
        series: d.series.map((s, i) => ({name: s.name, type: 'line', symbolSize: 6, symbol: style(s, i).symbol, color: style(s, i).color,
          lineStyle: {width: 2, type: style(s, i).type}, data: s.points.map((p) => [stretch(p[0]), p[1]])}))
      };
    },

    predicted: (d) => {
      const all = d.points.flatMap((p) => [p[0], p[1]]);
      const least = Math.min(...all), most = Math.max(...all);
      return {
        grid: {left: 62, right: 16, top: 34, bottom: 44},
        xAxis: below('measured ' + d.axis, {scale: true}), yAxis: axis('predicted', {scale: true}),
        tooltip: tip({formatter: (p) => {
          const r = d.points[p.dataIndex];
          return 'measured <b>' + short(r[0]) + '</b><br>predicted ' + span(r.slice(1, 4)) + (r[5] ? ' (extrapolated)' : '') + '<br>' + wrap(r[4]);
        }}),
        series: [
          {type: 'line', silent: true, symbol: 'none', data: [[least, least], [most, most]], lineStyle: {color: colour.soft, type: 'dashed', width: 1}},
          whiskers(d.points.map((p) => [p[0], p[2], p[3]]), colour.before, 2),
          {type: 'scatter', symbolSize: 8, z: 6, data: d.points.map((p) => ({value: [p[0], p[1]], symbol: p[5] ? 'triangle' : 'circle',
            itemStyle: {color: p[5] ? colour.beyond : colour.untested}}))}
        ]
      };
    },

    residuals: (d) => ({
      grid: {left: 62, right: 16, top: 34, bottom: 44},
      xAxis: below('predicted ' + d.axis, {scale: true}),
      yAxis: axis('residual', {axisLabel: {color: colour.soft, formatter: percent}}),
      tooltip: tip({formatter: (p) => '<b>' + percent(p.data.value[1]) + '</b><br>' + wrap(d.points[p.dataIndex][4])}),
      series: [
        whiskers(d.points.map((p) => [p[1], p[2] / p[1] - 1, p[3] / p[1] - 1]), colour.before, 2),
        {type: 'scatter', symbolSize: 8, z: 6, data: d.points.map((p) => {
          const outside = p[0] < p[2] || p[0] > p[3];
          return {value: [p[1], p[0] / p[1] - 1], symbol: outside ? 'triangle' : 'circle',
            itemStyle: {color: outside ? colour.c0 : colour.untested}};
        }),
        markLine: {symbol: 'none', silent: true, data: [{yAxis: 0, lineStyle: {color: colour.soft, type: 'dashed'}, label: {show: false}}]}}
      ]
    }),

    law: (d) => ({
      grid: {left: 56, right: 16, top: 34, bottom: 30},
      xAxis: axis('', {type: d.log ? 'log' : 'value', min: d.curve[0][0], max: d.curve[d.curve.length - 1][0], splitLine: {show: false}}),
      yAxis: measureAxis(d.axis),
      tooltip: tip({formatter: (p) => (p.seriesType === 'scatter' ? 'measured at ' : 'law at ') + short(p.data[0]) +
        ': <b>' + short(p.data[1]) + '</b>'}),
      series: (d.axis.scale === 'log' ? [] : band(d.curve.map((c) => c[0]), d.curve.map((c) => c[2]), d.curve.map((c) => c[3]), colour.untested)).concat([
        {type: 'line', data: d.curve.map((c) => [c[0], c[1]]), symbol: 'none', lineStyle: {color: colour.untested, width: 2.2}},
        {type: 'scatter', data: d.data.map((p) => [p[0], p[1]]), symbolSize: 8, itemStyle: {color: colour.c0}, z: 6},
        whiskers(d.data.map((p) => [p[0], p[2], p[3]]), colour.c0, 4)
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
          textStyle: {color: colour.soft, fontSize: 11}, inRange: {color: ['#b2182b', '#f4a582', '#f7f7f7', '#92c5de', '#2166ac']}},
        tooltip: tip({formatter: (p) => escape(d.x_name) + ' ' + short(d.x[p.data[0]]) + ', ' +
          escape(d.y_name) + ' ' + short(d.y[p.data[1]]) + '<br>' + escape(d.axis) + ' <b>' + short(p.data[2]) + '</b>'}),
        series: [{type: 'heatmap', data: d.cells, progressive: 0}]
      };
    },

    walk: (d) => ({
      legend: legend({}),
      grid: underLegend(d.series.length),
      xAxis: below('matchers tried', {minInterval: 1}),
      yAxis: axis('packets decided', {min: 0, max: 1, axisLabel: {color: colour.soft, formatter: percent}}),
      tooltip: tip({trigger: 'axis', valueFormatter: percent}),
      series: d.series.map((s) => ({name: s.name, type: 'line', step: 'end', symbol: 'none', data: s.points,
        color: s.name === 'before' ? colour.before : colour.clear,
        lineStyle: {width: 2.4, type: s.name === 'before' ? 'dashed' : 'solid'}, areaStyle: {opacity: 0.08}}))
    }),

    // Matchers tried against the rules of a layout, and the layout that was taken.
    tradeoff: (d) => ({
      legend: legend({}),
      grid: underLegend(d.series.length),
      xAxis: below('rules of the layout', {scale: true, splitLine: {show: false}}),
      yAxis: axis(d.name || 'matchers tried', {min: 0}),
      tooltip: tip({trigger: 'axis', valueFormatter: short}),
      series: d.series.map((s, i) => ({name: s.name, type: 'line', data: s.points,
        color: i === 0 ? colour.clear : colour.before, lineStyle: {width: 2, type: i === 0 ? 'solid' : 'dashed'},
        markLine: i === 0 ? {symbol: 'none', silent: true, data: [{xAxis: d.taken, label: {formatter: 'taken'}, lineStyle: {color: colour.limit}}]} : undefined}))
    }),

    // What a counter did while traffic ran, a line a configuration.
    rates: (d) => ({
      legend: legend({}),
      grid: underLegend(d.series.length),
      xAxis: below(d.x, {splitLine: {show: false}}),
      yAxis: axis(d.name, {min: 0}),
      tooltip: tip({trigger: 'axis', valueFormatter: short}),
      series: d.series.map((s) => ({name: s.name, type: 'line', symbol: 'none', data: s.points,
        color: s.name === 'baseline' ? colour.before : colour.limit, lineStyle: {width: 1.8, type: s.name === 'baseline' ? 'dashed' : 'solid'}}))
    }),

    // Bytes in a queue over time, by flow, one on top of the other.
    depth: (d) => ({
      aria: patterns,
      legend: legend({type: 'scroll'}),
      grid: underLegend([1]),
      xAxis: below('microseconds since the burst began', {splitLine: {show: false}}),
      yAxis: axis('bytes in the queue', {min: 0}),
      tooltip: tip({trigger: 'axis', valueFormatter: short}),
      series: d.series.map((s, i) => ({name: s.name, type: 'line', stack: 'depth', symbol: 'none', data: s.points,
        color: s.name === 'others' ? colour.untested : causeColour(i), lineStyle: {width: 1}, areaStyle: {opacity: 0.6}}))
        .concat([{type: 'line', data: [], markLine: {symbol: 'none', silent: true, data: [mark(d.threshold, 'threshold', colour.limit)]}}])
    }),

    gain: (d) => ({
      aria: patterns,
      xAxis: {type: 'category', data: d.rows.map((r) => r[0]), axisLabel: {color: colour.soft}, axisLine: plainLine()},
      yAxis: axis(d.axis, {min: 0}),
      tooltip: tip({formatter: (p) => escape(d.rows[p.dataIndex][0]) + ': <b>' + span(d.rows[p.dataIndex].slice(1)) + '</b>'}),
      series: [
        {type: 'bar', barMaxWidth: 70, data: d.rows.map((r) => ({value: r[1], itemStyle: r[0] === 'predicted'
          ? hollow(colour.untested) : {color: r[0] === 'before' ? colour.before : colour.clear, decal: PLAIN}})),
          label: {show: true, position: 'top', formatter: (p) => short(p.value), color: colour.ink}},
        whiskers(d.rows.map((r, i) => [i, r[2], r[3]]), colour.ink, 6)
      ]
    })
  };

  const descriptions = JSON.parse(document.getElementById('charts').textContent);
  const charts = [...document.querySelectorAll('[data-chart]')].map((element) => {
    const description = descriptions[+element.dataset.chart];
    if (description.kind === 'sensitivity') element.style.height = 90 + 34 * description.rows.length + 'px';
    if (description.kind === 'evidence') element.style.height = 80 + 24 * description.rows.length + 'px';
    return {element, description, chart: echarts.init(element, null, {renderer: 'svg'})};
  });
  const drawAll = () => {
    readColours();
    for (const {element, description, chart} of charts) {
      narrow = element.clientWidth < 520;
      chart.resize();
      chart.setOption(Object.assign(base(), draw[description.kind](description)), true);
    }
  };
  drawAll();

  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth !== width) drawAll();
    width = window.innerWidth;
  });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  // Paper shows everything, in light colours, at its own width.
  let closed = [];
  window.addEventListener('beforeprint', () => {
    closed = [...document.querySelectorAll('details:not([open])')];
    closed.forEach((details) => { details.open = true; });
    document.documentElement.classList.add('print');
    drawAll();
  });
  window.addEventListener('afterprint', () => {
    closed.forEach((details) => { details.open = false; });
    document.documentElement.classList.remove('print');
    drawAll();
  });
  // For whoever checks the page from outside: how many pictures there are, and how many were drawn.
  document.documentElement.dataset.chartsDrawn = charts.length + '/' + descriptions.length;
})();
