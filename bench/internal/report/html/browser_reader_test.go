package html

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// checkReading: what a reader needs is there without a search. The losses come first
// and need no scrolling to the side, names are whole, and the matrix shows Cairn beside
// several rivals.
func checkReading(t *testing.T, ctx context.Context) {
	ask(t, ctx, `(() => {
	  const bad = [], phone = innerWidth < 500;
	  scrollTo(0, 0);
	  const first = document.querySelector('main h2'), top = first.getBoundingClientRect().top;
	  if (first.id !== 'behind-h' || top > innerHeight - 60) { bad.push('"' + first.textContent + '" is the first head, at ' + top); }
	  document.querySelectorAll('#behind .box').forEach(b => { if (b.scrollWidth > b.clientWidth) { bad.push(b.ariaLabel + ' is ' + b.scrollWidth + ' wide in ' + b.clientWidth); } });
	  const box = document.querySelector('.box.tall');
	  box.scrollTo(0, 0);
	  const edge = box.getBoundingClientRect().right;
	  const heads = [...document.querySelectorAll('.matrix thead th:not(.corner)')];
	  const seen = heads.filter(h => h.getBoundingClientRect().right <= edge + 1).length;
	  if (seen < Math.min(heads.length, phone ? 5 : 17)) { bad.push('the matrix shows ' + seen + ' of ' + heads.length + ' engines'); }
	  const subject = document.querySelector('.matrix td.subject'), before = subject.getBoundingClientRect().left;
	  box.scrollTo(9999, 0);
	  if (Math.abs(subject.getBoundingClientRect().left - before) > 1) { bad.push('Cairn leaves the matrix when it is scrolled'); }
	  box.scrollTo(0, 0);
	  return bad;
	})()`)
}

// checkWords: no engine's name is broken inside a word, no label of a chart is cut off
// or lies on another.
func checkWords(t *testing.T, ctx context.Context) {
	ask(t, ctx, `(() => {
	  const bad = new Set(), names = JSON.parse(document.getElementById('run').textContent).engines.map(e => e.name);
	  document.querySelectorAll('details').forEach(d => { d.open = true; });
	  const range = document.createRange();
	  document.querySelectorAll('tbody th').forEach(th => {
	    const text = [...th.childNodes].find(n => n.nodeType === 3 && n.data.trim());
	    if (!text || !names.includes(th.firstChild.textContent.trim())) { return; }
	    for (const word of text.data.matchAll(/[a-z]+/g)) {
	      range.setStart(text, word.index);
	      range.setEnd(text, word.index + word[0].length);
	      if (range.getClientRects().length > 1) { bad.add('broken: ' + word[0] + ' in ' + th.closest('table').caption.textContent); }
	    }
	  });
	  document.querySelectorAll('svg.chart').forEach(c => {
	    const texts = [...c.querySelectorAll('text')].map(s => [s.textContent, s.getBBox()]).filter(([s]) => s);
	    texts.forEach(([s, b], i) => {
	      const whole = names.find(n => s.endsWith('…') && n.length < 16 && n.startsWith(s.replace('★ ', '').slice(0, -1)));
	      if (whole) { bad.add('cut off: ' + whole); }
	      texts.slice(i + 1).forEach(([o, x]) => {
	        if (b.x + 1 < x.x + x.width && x.x + 1 < b.x + b.width && b.y + 4 < x.y + x.height && x.y + 4 < b.y + b.height) { bad.add(s + ' lies on ' + o + ' in ' + c.ariaLabel.slice(0, 40)); }
	      });
	    });
	  });
	  return [...bad];
	})()`)
}

// paperWidth is that of A4 less its margins, in pixels of CSS.
const paperWidth = 718

// checkPrint: on paper nothing is folded away, hidden behind a
// scroll bar or wider than the sheet.
func checkPrint(t *testing.T, ctx context.Context) {
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	view{width: paperWidth}.size(t, ctx, 1000)
	ask(t, ctx, `(() => {
	  const bad = [], root = document.documentElement;
	  dispatchEvent(new Event('beforeprint'));
	  if (root.scrollWidth > root.clientWidth) { bad.push('printed it is ' + root.scrollWidth + ' wide on a sheet of ' + root.clientWidth); }
	  document.querySelectorAll('table').forEach(t => {
	    const w = t.getBoundingClientRect().width;
	    if (w > root.clientWidth) { bad.push('printed: ' + w.toFixed() + ' wide: ' + t.caption.textContent.slice(0, 60)); }
	  });
	  document.querySelectorAll('.matrix td a').forEach(a => { if (a.scrollWidth > a.clientWidth) { bad.push('printed: cut off: ' + a.textContent + ', ' + a.scrollWidth + ' in ' + a.clientWidth + ' ' + getComputedStyle(a).fontSize); } });
	  document.querySelectorAll('tr, details > *').forEach(e => { if (e.getClientRects().length === 0) { bad.push('not printed: ' + e.textContent.slice(0, 60)); } });
	  return bad;
	})()`)
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}

// checkKinds: a button of a kind leaves the losses of that kind, the last one shows all,
// and what is folded away can be had.
func checkKinds(t *testing.T, ctx context.Context) {
	ask(t, ctx, `(() => {
	  const bad = [], rows = [...document.querySelectorAll('table.losses tbody tr')];
	  const shown = () => rows.filter(r => r.getClientRects().length > 0);
	  const buttons = [...document.querySelectorAll('button[data-kind]')];
	  if (buttons.length < 2) { bad.push(buttons.length + ' buttons'); }
	  buttons.forEach(b => {
	    b.click();
	    const kind = b.dataset.kind, more = document.querySelector('button.more');
	    if (!more.hidden) { more.click(); }
	    const all = rows.filter(r => !kind || r.dataset.kind === kind).length;
	    if (shown().length !== all || shown().some(r => kind && r.dataset.kind !== kind)) { bad.push('"' + b.textContent + '" shows ' + shown().length + ' of ' + all); }
	    if (document.querySelectorAll('button[data-kind][aria-pressed="true"]').length !== 1 || b.ariaPressed !== 'true') { bad.push('"' + b.textContent + '" is not the one pressed'); }
	  });
	  return bad;
	})()`)
}

// checkScrolling: what is wider than its box is reached with the arrow keys.
func checkScrolling(t *testing.T, ctx context.Context) {
	const wide = `[...document.querySelectorAll('.box, .wide')].find(b => b.scrollWidth > b.clientWidth + 20 && !b.querySelector('.matrix'))`
	found, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(() => { const b = `+wide+`; if (b) { b.scrollTo(0, 0); b.focus(); } return !!b; })()`))
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return // everything fits
	}
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	for range 100 { // it scrolls smoothly, and late where others want the processors
		scrolled, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.activeElement.scrollLeft > 0`))
		if err != nil {
			t.Fatal(err)
		}
		if scrolled {
			break
		}
		do(t, ctx, chromedp.Sleep(50*time.Millisecond))
	}
	ask(t, ctx, `(() => {
	  const b = document.activeElement;
	  if (!b.matches('.box, .wide')) { return ['the focus is on ' + b.tagName]; }
	  return b.scrollLeft > 0 ? [] : [b.ariaLabel + ' does not scroll'];
	})()`)
}
