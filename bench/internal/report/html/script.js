'use strict';
// The page is complete without this: it folds, moves the focus and saves the data.
(function () {
  var matrix = document.querySelector('table.matrix');

  function fold(group, closed) {
    group.classList.toggle('closed', closed);
    var button = group.querySelector('button.fold');
    button.setAttribute('aria-expanded', String(!closed));
    keepOneStop();
  }

  function foldAll(closed) {
    matrix.querySelectorAll('tbody.group').forEach(function (g) { fold(g, closed); });
  }

  function addFolds() {
    matrix.querySelectorAll('tbody.group').forEach(function (g) {
      var head = g.querySelector('tr.overall > th');
      var button = document.createElement('button');
      button.type = 'button';
      button.className = 'fold';
      button.setAttribute('aria-expanded', 'true');
      button.setAttribute('aria-label', 'figures of ' + head.textContent.trim());
      button.addEventListener('click', function () { fold(g, !g.classList.contains('closed')); });
      head.insertBefore(button, head.firstChild);
    });
    document.querySelectorAll('[data-fold]').forEach(function (b) {
      b.addEventListener('click', function () { foldAll(b.dataset.fold === 'none'); });
    });
    if (matrix.querySelectorAll('tr.figure').length > 80) { foldAll(true); }
  }

  // The links of the matrix are one stop for the Tab key; arrows move between them.
  function rows() {
    return Array.prototype.filter.call(matrix.querySelectorAll('tbody tr'), function (r) {
      return r.classList.contains('overall') || !r.parentNode.classList.contains('closed');
    }).map(function (r) { return r.querySelectorAll('td > a'); });
  }

  function keepOneStop() {
    var links = matrix.querySelectorAll('td > a');
    var current = matrix.querySelector('td > a[tabindex="0"]');
    if (!current || current.offsetParent === null) { current = links[0]; }
    links.forEach(function (a) { a.tabIndex = a === current ? 0 : -1; });
  }

  function move(event) {
    var link = event.target.closest('td > a');
    var step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -999], End: [0, 999] }[event.key];
    if (!link || !step || event.ctrlKey || event.altKey || event.metaKey) { return; }
    var all = rows(), at = [0, 0];
    all.forEach(function (r, y) { Array.prototype.forEach.call(r, function (a, x) { if (a === link) { at = [y, x]; } }); });
    var row = all[Math.max(0, Math.min(all.length - 1, at[0] + step[0]))];
    var next = row[Math.max(0, Math.min(row.length - 1, at[1] + step[1]))];
    event.preventDefault();
    link.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    next.parentNode.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  // A long list of losses shows its beginning, of one kind or of all; a button shows
  // the rest.
  function shorten(table) {
    var rows = Array.prototype.slice.call(table.tBodies[0].rows), few = Number(table.dataset.short);
    var kinds = document.querySelectorAll('[data-kind][aria-pressed]'), kind = '', all = false;
    var button = document.createElement('button');
    button.type = 'button';
    button.className = 'more';
    function show() {
      var shown = rows.filter(function (r) { return !kind || r.dataset.kind === kind; });
      var limit = all || shown.length < few + 4 ? shown.length : few;
      rows.forEach(function (r) { r.classList.toggle('otherkind', shown.indexOf(r) < 0); });
      shown.forEach(function (r, i) { r.classList.toggle('folded', i >= limit); });
      kinds.forEach(function (k) { k.setAttribute('aria-pressed', String(k.dataset.kind === kind)); });
      button.hidden = shown.length < few + 4;
      button.textContent = all ? 'Show fewer' : 'Show the other ' + (shown.length - few);
      button.setAttribute('aria-expanded', String(all));
    }
    button.addEventListener('click', function () { all = !all; show(); });
    kinds.forEach(function (k) {
      k.addEventListener('click', function () { kind = k.dataset.kind; all = false; show(); });
    });
    table.parentNode.after(button);
    show();
  }

  function offerData() {
    var save = document.getElementById('save');
    var data = document.getElementById('run').textContent;
    save.href = URL.createObjectURL(new Blob([data], { type: 'application/json' }));
    save.hidden = false;
  }

  function openForPrint() {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  }

  document.querySelectorAll('.tools').forEach(function (t) { t.hidden = false; });
  if (matrix && matrix.querySelector('td > a')) {
    addFolds();
    keepOneStop();
    matrix.addEventListener('keydown', move);
  }
  document.querySelectorAll('table.losses').forEach(shorten);
  offerData();
  window.addEventListener('beforeprint', openForPrint);
}());
