package scratch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Tests(m.Run)) }

// lay makes a file with a text, and the directories it needs.
func lay(t *testing.T, text string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	os.MkdirAll(filepath.Dir(name), 0o755)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// age makes files look old enough to be nobody's.
func age(t *testing.T, paths ...string) {
	t.Helper()
	past := time.Now().Add(-2 * unlockedFor)
	for _, path := range paths {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeftoversOfTheKilledAreRemoved(t *testing.T) {
	dir := t.TempDir()
	of := func(digits string) string { return filepath.Join(dir, prefix+digits) }
	lay(t, about, of("1"), mark)
	lay(t, "x", of("1"), "store", "data")
	lay(t, "x", of("2"), "store", "data")
	lay(t, "", of("3"), newMark)
	for digits, says := range map[string]string{"4": "", "5": about} { // killed before and after it was written
		age(t, lay(t, says, of(digits), newMark))
	}
	os.Mkdir(of("6"), 0o755)
	age(t, of("2"), of("6"))
	living, release, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, releaseSecond, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	for path, want := range map[string]bool{of("1"): false, of("2"): true, of("3"): true, of("4"): false, of("5"): false, of("6"): false, living: true, root: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, mark)); err != nil || string(text) != about {
		t.Errorf("the mark says %q, %v", text, err)
	}
	release()
	removeLeftovers(dir)
	if _, err := os.Stat(living); err == nil {
		t.Error("what an ended owner left is still there")
	}
}

// A run used to remove every file beside its data whose name began like those of its
// directories, the report of the full suite among them, and foreign directories with a
// file like its mark.
func TestWhatIsNotOursStays(t *testing.T) {
	dir := t.TempDir()
	kept := []string{
		lay(t, "{}", dir, "cairn-bench-full.json"),
		lay(t, "{}", dir, prefix+"7"),
		lay(t, "x", dir, "photos", mark),
		lay(t, "x", dir, "cairn-bench-8", mark),
		lay(t, about, dir, prefix+"old", mark),
		lay(t, "ann\n", dir, prefix+"9", mark),
		lay(t, about+"and more", dir, prefix+"10", mark),
		lay(t, "ann\n", dir, prefix+"11", newMark),
		lay(t, "", dir, prefix+"12", newMark),
		lay(t, "x", dir, prefix+"12", "notes"),
		lay(t, "", dir, prefix+"13", mark),
	}
	age(t, kept...)
	for _, name := range kept {
		if parent := filepath.Dir(name); parent != dir {
			age(t, parent)
		}
	}
	away := filepath.Dir(lay(t, about, t.TempDir(), prefix+"14", mark))
	link := filepath.Join(dir, prefix+"15")
	if err := os.Symlink(away, link); err != nil {
		t.Log("no symbolic links here:", err)
	} else {
		marked := filepath.Join(dir, prefix+"16", mark)
		os.Mkdir(filepath.Dir(marked), 0o755)
		os.Symlink(filepath.Join(away, mark), marked)
		kept = append(kept, link, marked)
	}
	_, release, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, name := range append(kept, filepath.Join(away, mark)) {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
}
