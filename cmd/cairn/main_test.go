package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cairndb/cairn"
)

// binary is the command under test, built once.
var binary string

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		hold(dir)
	}
	os.Exit(buildAndRun(m))
}

// holdVariable makes the test binary a process that writes to the store of this
// name and then keeps it open until it is killed.
const holdVariable = "CAIRN_TEST_HOLD"

func hold(dir string) {
	db, err := cairn.Open(dir, nil)
	for _, key := range []string{"a", "c"} {
		if err == nil {
			err = db.Put([]byte(key), []byte("new"))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// startHolder starts such a process, and returns when it has written.
func startHolder(t *testing.T, dir string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cairn-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "cairn")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is what one run of the command left.
type result struct {
	code     int
	out, err string
}

func cli(t *testing.T, args ...string) result {
	t.Helper()
	return cliWith(t, nil, args...)
}

func cliWith(t *testing.T, stdin []byte, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
}

// ok wants code 0, nothing on standard error, and out on standard output.
func (r result) ok(t *testing.T, out string) {
	t.Helper()
	if r.code != 0 || r.err != "" || r.out != out {
		t.Fatalf("code %d, stderr %q, stdout %q; want code 0 and stdout %q", r.code, r.err, short(r.out), short(out))
	}
}

// fails wants a code, nothing on standard output, and an error with these parts.
func (r result) fails(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code || r.out != "" {
		t.Fatalf("code %d, stdout %q, stderr %q; want code %d", r.code, short(r.out), r.err, code)
	}
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			t.Errorf("stderr %q lacks %q", r.err, p)
		}
	}
}

func short(s string) string {
	if len(s) > 400 {
		return s[:400] + "..."
	}
	return s
}

// parse decodes one JSON document, refusing fields that v does not have.
func parse[T any](t *testing.T, text string) (v T) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, short(text))
	}
	if dec.More() {
		t.Fatalf("more than one document in %q", short(text))
	}
	return v
}

// decode decodes one JSON document, passing over fields that v does not have.
func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %q", err, short(text))
	}
}

// failureOf decodes the error document.
func failureOf(t *testing.T, r result) failure {
	t.Helper()
	return parse[struct {
		Error failure `json:"error"`
	}](t, r.err).Error
}

// newStore makes a store with these keys and values, in turn.
func newStore(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	db := openStore(t, dir, nil)
	for i := 0; i < len(pairs); i += 2 {
		if err := db.Put([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openStore(t *testing.T, dir string, opts *cairn.Options) *cairn.DB {
	t.Helper()
	db, err := cairn.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// contents is every file of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}
