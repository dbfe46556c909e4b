package html

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cairndb/cairn/bench/internal/result"
)

// With this variable set to 1 a machine without a browser fails the tests.
const needBrowser = "CAIRN_BENCH_BROWSER"

// Screenshots of the tests go to the directory this variable names; none if unset.
const keepShots = "CAIRN_BENCH_SHOTS"

// A real run can stand in for the fabricated one: the file run -json wrote.
const otherRun = "CAIRN_BENCH_RUN"

// view is how a reader looks at the page.
type view struct {
	name   string
	width  int64
	scheme string
}

var views = []view{{"desktop-light", 1280, "light"}, {"desktop-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}}

// browserPath is the first browser on PATH, or nothing.
func browserPath() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// noBrowser skips the test, or fails it where a browser is said to be here.
func noBrowser(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(needBrowser) == "1" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED, THE PAGE WAS NOT LOOKED AT: " + why)
}

// browser starts Chromium, or skips the test where there is none that starts.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := browserPath()
	if path == "" {
		noBrowser(t, "no chromium, chromium-browser or google-chrome on PATH (Debian: apt-get install chromium)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil { // without a limit: that of the first call is the browser's life
		noBrowser(t, "starting the browser: "+err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// witness records what the page asked for and complained about.
type witness struct {
	sync.Mutex
	requests, complaints []string
}

func watch(t *testing.T, ctx context.Context) *witness {
	w := &witness{}
	err := chromedp.Listen(ctx, func(event any) {
		w.Lock()
		defer w.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			w.requests = append(w.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			w.complaints = append(w.complaints, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			w.complaints = append(w.complaints, string(e.Type)+" on the console")
		case *log.EventEntryAdded:
			w.complaints = append(w.complaints, e.Entry.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(t, ctx, log.Enable, cdp.Empty{})
	call(t, ctx, network.Enable, network.EnableParams{})
	return w
}

// behindInTwoKinds is the sample with a Cairn that is behind in space too.
func behindInTwoKinds() *result.Run {
	run := sample()
	for _, c := range run.Cells {
		if c.Engine == "cairn" {
			c.Metrics["disk"] *= 10
		}
	}
	return run
}

func shownRun(t *testing.T) *result.Run {
	name := os.Getenv(otherRun)
	if name == "" {
		return behindInTwoKinds()
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := result.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestInABrowser(t *testing.T) {
	ctx := browser(t)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(render(t, shownRun(t))), 0o644); err != nil {
		t.Fatal(err)
	}
	address := "file://" + filepath.ToSlash(file)
	seen := watch(t, ctx)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}})
			v.size(t, ctx, 900)
			do(t, ctx, chromedp.Navigate(address))
			checkLayout(t, ctx)
			checkReading(t, ctx)
			checkContrast(t, ctx)
			checkKeyboard(t, ctx)
			checkWords(t, ctx)
			checkKinds(t, ctx)
			checkScrolling(t, ctx)
			checkDownload(t, ctx)
			keepShot(t, ctx, v, address)
		})
	}
	t.Run("print", func(t *testing.T) {
		do(t, ctx, chromedp.Navigate(address))
		checkPrint(t, ctx)
		keepPrint(t, ctx, address)
	})
	seen.Lock()
	defer seen.Unlock()
	if len(seen.complaints) > 0 {
		t.Errorf("the console says %q", seen.complaints)
	}
	if len(seen.requests) == 0 {
		t.Error("not even the page was asked for: nothing was watched")
	}
	for _, r := range seen.requests {
		if base, _, _ := strings.Cut(r, "#"); base != address && r != "data:," && r != "about:blank" && !strings.HasPrefix(r, "blob:") {
			t.Errorf("the page asks for %s", r)
		}
	}
}

// size makes the window as wide as the view.
func (v view) size(t *testing.T, ctx context.Context, height int64) {
	t.Helper()
	call(t, ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: v.width, Height: height, DeviceScaleFactor: 1, Mobile: v.width < 500})
}

func call[P, R any](t *testing.T, ctx context.Context, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// keepShot saves pictures of the page, as a reader meets it, for people to look at.
func keepShot(t *testing.T, ctx context.Context, v view, address string) {
	dir := os.Getenv(keepShots)
	if dir == "" {
		return
	}
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(address),
		chromedp.Evaluate[chromedp.Void](`(() => { const s = document.querySelector('svg.curve'); if (s) { s.closest('.wide').id = 'curve'; } })()`))
	v.size(t, ctx, 2000)
	for _, id := range []string{"main", "bad", "matrix", "workloads", "curve", "durability", "published", "engines", "machine"} {
		do(t, ctx, chromedp.Evaluate[chromedp.Void](`(() => { const e = document.getElementById('`+id+`'); scrollTo(0, !e || e.id === 'main' ? 0 : e.getBoundingClientRect().top + scrollY - 50); })()`),
			chromedp.Sleep(200*time.Millisecond))
		shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(dir, v.name+"-"+id+".png"), shot)
	}
}

// keepPrint saves what a printer would get, and its first sheets as a picture.
func keepPrint(t *testing.T, ctx context.Context, address string) {
	dir := os.Getenv(keepShots)
	if dir == "" {
		return
	}
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	sheets, err := chromedp.Call(ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{PrintBackground: new(true), PaperWidth: 8.27, PaperHeight: 11.69})
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "print.pdf"), sheets.Data)
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	view{width: paperWidth}.size(t, ctx, 12000)
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "print.png"), shot)
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}

func save(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
