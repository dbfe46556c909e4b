package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Verdict is what became of one mutant.
type Verdict struct {
	Site   *Site
	Killer string // the test that failed; "" if none did
	Broken string // the mutant did not compile: the compiler's output
	Took   time.Duration
}

// Runner runs the tests on mutants of a copy of the module.
type Runner struct {
	Root string // the copy
	Dir  string // for the changed file and the overlay
}

// Copy copies the module's sources from root to a new directory under dir, so that
// edits made meanwhile do not matter.
func Copy(root, dir string) (*Runner, error) {
	r := &Runner{Root: filepath.Join(dir, "module"), Dir: dir}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || rel == "bench"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(r.Root, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(r.Root, rel), b, 0o644)
	})
	return r, err
}

// commands returns the tests for a kind of site, the quickest killers first.
func commands(s *Site) [][]string {
	crash := []string{"./internal/crashtest", "-run", "TestCrash|TestSyncInterval", "-crash.images=120"}
	damage := []string{"./internal/crashtest", "-run", "TestFlips|TestOtherDamage|TestHeaders|TestForged|TestFrames|TestChain|TestSegment|TestLinks", "-crash.sample=29"}
	faults := []string{"./internal/crashtest", "-run", "TestFaults", "-crash.faults=100"}
	thorough := []string{"./internal/crashtest", "-run", "TestCrash", "-crash.images=1500", "-crash.seed=100"}
	flips := []string{"./internal/crashtest", "-run", "TestFlips", "-crash.sample=3"}
	own := []string{"./" + filepath.ToSlash(filepath.Dir(s.File))}
	if own[0] == "./internal/layout" {
		own = append(own, "./internal/table") // whose tests are its own, too
	}
	if s.Kind == Sync || s.Kind == SyncDir {
		return [][]string{crash, own, faults, thorough}
	}
	return [][]string{damage, own, crash, flips, thorough}
}

// Try runs the tests on the mutant of s until one fails.
func (r *Runner) Try(ctx context.Context, s *Site) (*Verdict, error) {
	start := time.Now()
	overlay, err := r.overlay(s)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Site: s}
	for _, args := range commands(s) {
		if v.Killer, v.Broken, err = r.test(ctx, overlay, args); err != nil || v.Killer != "" || v.Broken != "" {
			break
		}
	}
	v.Took = time.Since(start)
	return v, err
}

// Baseline runs all the commands on the unchanged module; they must succeed.
func (r *Runner) Baseline(ctx context.Context, sites []*Site) error {
	done := map[string]bool{}
	for _, s := range sites {
		for _, args := range commands(s) {
			key := strings.Join(args, " ")
			if done[key] {
				continue
			}
			done[key] = true
			killer, broken, err := r.test(ctx, "", args)
			if err != nil || killer != "" || broken != "" {
				return fmt.Errorf("without any mutation %s fails: %s%s%w", key, killer, broken, errors.Join(err))
			}
		}
	}
	return nil
}

// overlay writes the changed file and tells the go command about it.
func (r *Runner) overlay(s *Site) (string, error) {
	changed, err := s.Mutate(r.Root)
	if err != nil {
		return "", err
	}
	name := filepath.Join(r.Dir, "mutant.go")
	if err := os.WriteFile(name, changed, 0o644); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(r.Root, filepath.FromSlash(s.File)): name}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(r.Dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o644)
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs one go test and says which test failed, or that it did not compile.
func (r *Runner) test(ctx context.Context, overlay string, args []string) (killer, broken string, err error) {
	all := []string{"test", "-count=1", "-failfast", "-timeout", "5m"}
	if overlay != "" {
		all = append(all, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(all, args...)...)
	cmd.Dir = r.Root
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", "", nil
	case !errors.As(err, &exit) || ctx.Err() != nil:
		return "", "", fmt.Errorf("%v: %w", cmd.Args, err)
	case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
		return "", string(out), nil
	}
	killer = strings.TrimPrefix(args[0], "./") + ": "
	if all := failed.FindAllStringSubmatch(string(out), -1); all != nil {
		return killer + all[len(all)-1][1], "", nil
	}
	return killer + "panic or timeout", "", nil
}

// Table writes verdicts as Markdown.
func Table(verdicts []*Verdict) string {
	var b strings.Builder
	b.WriteString("| taken away | where | expression | killed by |\n|---|---|---|---|\n")
	for _, v := range verdicts {
		killer := v.Killer
		switch {
		case v.Broken != "":
			killer = "**does not compile**"
		case killer == "":
			killer = "**survived**"
		}
		text := strings.ReplaceAll(strings.Join(strings.Fields(v.Site.Text), " "), "|", "\\|")
		fmt.Fprintf(&b, "| %s | %s, `%s` | `%s` | %s |\n", v.Site.Kind, v.Site.File, v.Site.Func, text, killer)
	}
	return b.String()
}
