package html

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ask evaluates an expression that returns a list of complaints.
func ask(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	complaints, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](expression))
	if err != nil {
		t.Error(err)
	}
	for i, c := range complaints {
		if i == 8 {
			t.Errorf("and %d more", len(complaints)-i)
			break
		}
		t.Error(c)
	}
}

// checkLayout: the page is no wider than the window, every chart has drawn shapes of
// some size, and tables do not overflow their boxes unless those scroll.
func checkLayout(t *testing.T, ctx context.Context) {
	ask(t, ctx, `(() => {
	  const bad = [], root = document.documentElement;
	  document.querySelectorAll('.workload').forEach(s => { s.style.contentVisibility = 'visible'; });
	  document.querySelectorAll('details').forEach(d => { d.open = true; });
	  if (root.scrollWidth > root.clientWidth) {
	    bad.push('the page is ' + root.scrollWidth + ' wide in a window of ' + root.clientWidth);
	    document.querySelectorAll('body *').forEach(e => {
	      if (e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest('.box, .wide, .jump, .vh, .skip')) { bad.push('too wide: ' + e.tagName + '.' + e.className); }
	    });
	  }
	  const charts = document.querySelectorAll('svg.chart');
	  if (charts.length === 0) { bad.push('no chart'); }
	  charts.forEach(c => {
	    const box = c.getBoundingClientRect();
	    const shapes = Array.from(c.querySelectorAll('rect, path, text.none')).filter(s => { const b = s.getBBox(); return b.width > 0 || b.height > 0; });
	    if (box.width < 200 || box.height < 40 || shapes.length === 0) { bad.push('nothing is drawn in ' + c.getAttribute('aria-label')); }
	    c.querySelectorAll('text').forEach(s => {
	      const b = s.getBBox(), v = c.viewBox.baseVal;
	      if ((b.x < -1 || b.x + b.width > v.width + 1)) { bad.push('cut off: ' + s.textContent); }
	    });
	  });
	  document.querySelectorAll('figure').forEach(f => { if (!f.querySelector('svg')) { bad.push('a figure without a chart'); } });
	  return bad;
	})()`)
}

// checkContrast computes WCAG's ratio for every text that is shown: 4.5 at least, 3
// where it is large.
func checkContrast(t *testing.T, ctx context.Context) {
	ask(t, ctx, `(() => {
	  const bad = new Set();
	  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	  const light = c => { const f = c.slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
	  const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) { return c; } } return [255, 255, 255, 1]; };
	  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	  while (walker.nextNode()) {
	    const e = walker.currentNode.parentElement;
	    if (!walker.currentNode.data.trim() || e.closest('script, style, .vh, [hidden]') || e.getClientRects().length === 0) { continue; }
	    const style = getComputedStyle(e);
	    const a = light(parse(e instanceof SVGElement ? style.fill : style.color)), b = light(ground(e));
	    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
	    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
	    if (ratio < (large ? 3 : 4.5)) { bad.add('contrast ' + ratio.toFixed(2) + ' of ' + e.tagName + '.' + (e.getAttribute('class') || '') + ' in ' + e.parentElement.tagName + '.' + (e.parentElement.getAttribute('class') || '')); }
	  }
	  return [...bad];
	})()`)
}

// focused says where the focus is, and whether one can see it.
const focused = `(() => {
  const e = document.activeElement, td = e.closest('td');
  return (td && td.closest('table.matrix') ? td.parentElement.sectionRowIndex + ' ' + td.cellIndex : e.tagName + '.' + e.className) +
    (getComputedStyle(e).outlineStyle === 'none' ? ' unseen' : covered(e));
  function covered(e) {
    if (!td) { return ''; }
    const b = e.getClientRects()[0], on = document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2);
    return on === e || e.contains(on) ? '' : ' under ' + (on ? on.tagName + '.' + on.className + ' ' + on.textContent.slice(0, 20) : 'the edge at ' + b.left.toFixed() + ' ' + b.top.toFixed()) + ' unseen';
  }
})()`

// checkKeyboard goes from the top to the matrix by Tab, through it by arrows, and by
// Enter to the chart of a figure.
func checkKeyboard(t *testing.T, ctx context.Context) {
	at := func(keys string) string {
		do(t, ctx, chromedp.KeyEvent(keys), chromedp.Sleep(60*time.Millisecond))
		where, err := chromedp.Run(ctx, chromedp.Evaluate[string](focused))
		if err != nil {
			t.Fatal(err)
		}
		return where
	}
	ask(t, ctx, `(() => { document.querySelector('[data-fold="all"]').click(); document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0); return []; })()`)
	if first := at(kb.Tab); first != "A.skip" {
		t.Errorf("the first stop is %q, want the skip link", first)
	}
	where := ""
	for stops := 0; where != "0 1" && stops < 400; stops++ {
		if where = at(kb.Tab); strings.HasSuffix(where, " unseen") {
			t.Errorf("the focus cannot be seen on %s", where)
		}
	}
	if where != "0 1" {
		t.Fatalf("Tab never comes to the matrix; it ended at %q", where)
	}
	for _, step := range []struct{ keys, want string }{
		{kb.ArrowDown, "1 1"}, {kb.ArrowRight, "1 2"}, {kb.End, "1 "}, {kb.ArrowLeft, "1 "}, {kb.ArrowLeft, "1 "}, {kb.ArrowLeft, "1 "}, {kb.ArrowLeft, "1 "}, {kb.ArrowLeft, "1 "}, {kb.ArrowLeft, "1 "}, {kb.Home, "1 1"}, {kb.ArrowUp, "0 1"}, {kb.ArrowUp, "0 1"}, {kb.ArrowDown, "1 1"},
	} {
		if got := at(step.keys); !strings.HasPrefix(got, step.want) || strings.HasSuffix(got, " unseen") {
			t.Errorf("an arrow leads to %q, want %q", got, step.want)
		}
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter), chromedp.Sleep(100*time.Millisecond))
	ask(t, ctx, `(() => {
	  const target = document.querySelector(':target');
	  if (!target || !target.querySelector('svg')) { return ['Enter leads to ' + location.hash + ', which is no chart']; }
	  const top = target.getBoundingClientRect().top;
	  return top > -5 && top < innerHeight ? [] : ['Enter leads to a chart that is at ' + top];
	})()`)
}

// checkDownload: the link holds the very data of the page.
func checkDownload(t *testing.T, ctx context.Context) {
	ask(t, ctx, `(() => {
	  const save = document.getElementById('save');
	  if (save.hidden || !save.href.startsWith('blob:') || !save.download.endsWith('.json')) { return ['no link to save the data: ' + save.href]; }
	  return JSON.parse(document.getElementById('run').textContent).schema === 'cairn-bench/1' ? [] : ['the data are no run'];
	})()`)
}
