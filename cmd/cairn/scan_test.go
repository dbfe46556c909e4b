package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cairndb/cairn"
)

// keysOf is the keys of a store with spaces between.
func keysOf(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := cli(t, append([]string{"scan", "--keys", dir}, args...)...)
	if r.code != 0 || r.err != "" {
		t.Fatalf("code %d: %s", r.code, r.err)
	}
	return strings.Join(strings.Fields(r.out), " ")
}

func TestScanBounds(t *testing.T) {
	dir := newStore(t, "a", "1", "b", "2", "b/1", "3", "b/2", "4", "c", "5")
	for _, c := range []struct{ flags, want string }{
		{"", "a b b/1 b/2 c"},
		{"--from b/1", "b/1 b/2 c"},
		{"--to b/1", "a b"},
		{"--from b --to b", ""},
		{"--from b --to c", "b b/1 b/2"},
		{"--prefix b/", "b/1 b/2"},
		{"--prefix b --from b/2", "b/2"},
		{"--prefix b --from a --to b/2", "b b/1"},
		{"--prefix b/ --from a", "b/1 b/2"},
		{"--prefix b/ --from b/9", ""},
		{"--prefix b/ --to z", "b/1 b/2"},
		{"--prefix zz", ""},
		{"--reverse", "c b/2 b/1 b a"},
		{"--reverse --prefix b --limit 2", "b/2 b/1"},
		{"--limit 2", "a b"},
		{"--limit 0 --to b", "a"},
		{"--hex --from 62 --to 622f", "62"},
		{`-e --from \x62\x2f --limit 1`, "b/1"},
	} {
		if got := keysOf(t, dir, strings.Fields(c.flags)...); got != c.want {
			t.Errorf("%s: %q, want %q", c.flags, got, c.want)
		}
	}
}

func TestScanForms(t *testing.T) {
	dir := newStore(t, "k\t1\n", "v\\\x1b", "\xff", "")
	cli(t, "scan", dir).ok(t, `k\t1\n`+"\t"+`v\\\x1b`+"\n"+`\xff`+"\t\n")
	cli(t, "scan", "--escaped", dir).ok(t, `k\t1\n`+"\t"+`v\\\x1b`+"\n"+`\xff`+"\t\n")
	cli(t, "scan", "--hex", dir).ok(t, "6b09310a\t765c1b\nff\t\n")
	cli(t, "scan", "--raw", dir).ok(t, "k\t1\n\tv\\\x1b\n\xff\t\n")
	cli(t, "scan", "--json", dir).ok(t, `{"key":"k\t1\n","value":"v\\\u001b"}`+"\n"+`{"key_base64":"/w==","value":""}`+"\n")
	cli(t, "scan", "--json", "--keys", "--reverse", dir).ok(t, `{"key_base64":"/w=="}`+"\n"+`{"key":"k\t1\n"}`+"\n")
}

// What scan prints, get takes.
func TestScanEscapesAreArguments(t *testing.T) {
	key := "a\x01\\b \u00e9\xc3\xff\n"
	dir := newStore(t, key, "found")
	printed := strings.TrimSuffix(cli(t, "scan", "--keys", dir).out, "\n")
	cli(t, "get", "--raw", dir, printed).fails(t, exitNotFound)
	cli(t, "get", "-e", dir, printed).ok(t, "found\n")
}

func TestScanEmptyStore(t *testing.T) {
	dir := newStore(t)
	cli(t, "scan", dir).ok(t, "")
	cli(t, "scan", "--json", "--reverse", dir).ok(t, "")
}

func TestScanUsage(t *testing.T) {
	dir := newStore(t, "a", "1")
	for _, flags := range []string{"--limit -1", "--limit x", "--from b --to a", "--to=", "--from=", "--prefix=",
		"--hex --from 0", "--prefix b --from zzz", "--prefix b/ --from b0", "--prefix b --to b", "--prefix b --to a",
		"--prefix a --prefix b", "--from a --from a", "--to b --to c", "--prefix a --prefix=",
		"--raw --hex", "--escaped --hex", "extra", "--nope"} {
		cli(t, append([]string{"scan", dir}, strings.Fields(flags)...)...).fails(t, exitUsage, "cairn scan: ")
	}
	cli(t, "scan").fails(t, exitUsage)
	cli(t, "scan", "--raw", "--json", dir).fails(t, exitUsage, "--json", "--raw")
}

// largeStore has n rows of about 100 bytes.
func largeStore(t *testing.T, n int) string {
	t.Helper()
	dir := newStore(t)
	db := openStore(t, dir, &cairn.Options{Durability: cairn.Relaxed})
	b := cairn.NewBatch()
	for i := range n {
		b.Put(fmt.Appendf(nil, "key%08d", i), fmt.Appendf(nil, "value %d %s", i, strings.Repeat("x", 80)))
		if b.Len() == 10_000 || i == n-1 {
			if err := db.Write(b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestScanLarge(t *testing.T) {
	const n = 50_000
	dir := largeStore(t, n)
	lines := strings.Split(strings.TrimSuffix(cli(t, "scan", "--json", dir).out, "\n"), "\n")
	if len(lines) != n {
		t.Fatalf("%d lines, want %d", len(lines), n)
	}
	for i, line := range lines {
		if want := fmt.Sprintf(`{"key":"key%08d","value":"value %d `, i, i); !strings.HasPrefix(line, want) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}
