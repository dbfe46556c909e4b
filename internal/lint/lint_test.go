package lint

import (
	"bytes"
	"go/ast"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

func readFile(name string) ([]byte, error) { return os.ReadFile(name) }

// layers is who may import whom: strictly downward. Packages of testOnly may
// import anything and are imported from tests only.
var layers = [][]string{
	{"internal/base", "internal/invariants", "vfs", "internal/recycle", "internal/prefetch"},
	{"internal/frame", "internal/pointindex", "internal/block", "internal/epoch", "internal/arena", "internal/tombstone", "internal/reserve", "internal/turn", "internal/outfile"},
	{"internal/memtable", "internal/cache", "internal/iterator", "internal/wal", "internal/layout", "vfs/memfs", "vfs/faultfs", "internal/shm"},
	{"internal/table", "internal/manifest", "internal/mvcc", "internal/group"},
	{"internal/compact", "internal/directory", "internal/obsolete"},
	{"internal/tree"},
	{"internal/sorted"},
	{"internal/tablefiles", "internal/report", "internal/view", "internal/ledger", "internal/durability", "internal/logfiles"},
	{"internal/recovery", "internal/config", "internal/segments", "internal/pace", "internal/merger", "internal/indexer"},
	{"internal/follow", "internal/installer"},
	{"internal/engine"},
	{"internal/txn"},
	{""},
}

// within lists the imports that are allowed inside one layer.
var within = map[string][]string{
	"internal/frame":      {"internal/arena"},
	"internal/pointindex": {"internal/arena"},
	"internal/epoch":      {},
	"internal/pace":       {"internal/config"},
	"internal/durability": {"internal/ledger"},
}

var testOnly = []string{
	"internal/lint", "internal/crashtest", "internal/lifetest", "internal/mutants", "internal/metamorphic",
	"internal/histories", "internal/iterator/itertest", "vfs/vfstest",
}

func layerOf(pkg string) int {
	for i, l := range layers {
		if slices.Contains(l, pkg) {
			return i
		}
	}
	return -1
}

func TestLayers(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || slices.Contains(testOnly, s.pkg) {
			continue
		}
		from := layerOf(s.pkg)
		if from < 0 {
			t.Errorf("%s: package %q is in no layer", s.path, s.pkg)
			continue
		}
		for _, imp := range s.file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			rel, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			rel = strings.TrimPrefix(rel, "/")
			if to := layerOf(rel); to < 0 || to >= from && !slices.Contains(within[s.pkg], rel) {
				t.Errorf("%s imports %q: not downward", s.path, rel)
			}
		}
	}
}

// Requirements of the engine's module: nothing else may creep in.
func TestRequirements(t *testing.T) {
	mod, err := readFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"github.com/cespare/xxhash/v2", "github.com/klauspost/compress", "golang.org/x/sys"}
	inside := false
	for line := range strings.Lines(string(mod)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inside = true
		case line == ")":
			inside = false
		case inside && line != "" && !slices.Contains(allowed, strings.Fields(line)[0]):
			t.Errorf("go.mod requires %s", line)
		case strings.HasPrefix(line, "replace"):
			t.Errorf("go.mod has %q", line)
		}
	}
}

const (
	maxFunctionLines = 70
	maxFileLines     = 1000
	maxPackageLines  = 3000
	medianFunction   = 10
	maxRootNames     = 150
)

// pinned are packages over the limit: ratchets, which only go down.
var pinned = map[string]int{}

func TestLengths(t *testing.T) {
	var lengths []int
	packages := map[string]int{}
	for _, s := range sources(t) {
		n := bytes.Count(s.bytes, []byte("\n"))
		if n > maxFileLines {
			t.Errorf("%s has %d lines, the limit is %d", s.path, n, maxFileLines)
		}
		if s.test {
			continue
		}
		packages[s.pkg] += n
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				n := s.line(f.End()) - s.line(f.Pos()) + 1
				lengths = append(lengths, n)
				if n > maxFunctionLines {
					t.Errorf("%s: function %s has %d lines, the limit is %d", s.path, f.Name.Name, n, maxFunctionLines)
				}
			}
		}
	}
	for p, n := range packages {
		if limit := max(maxPackageLines, pinned[p]); n > limit {
			t.Errorf("package %q has %d lines, the limit is %d", p, n, limit)
		}
	}
	sort.Ints(lengths)
	if m := lengths[len(lengths)/2]; m > medianFunction {
		t.Errorf("the median function has %d lines, the limit is %d", m, medianFunction)
	}
}

var bannedNames = []string{"util", "utils", "common", "helpers", "helper", "types", "misc"}

func TestNames(t *testing.T) {
	for _, s := range sources(t) {
		parts := strings.Split(strings.TrimSuffix(s.path, ".go"), "/")
		for _, p := range parts {
			if slices.Contains(bannedNames, strings.TrimSuffix(p, "_test")) {
				t.Errorf("%s: a name says what the thing provides", s.path)
			}
		}
		for i, b := range s.bytes {
			if b >= 0x80 && !s.test {
				t.Errorf("%s: byte %d is not ASCII", s.path, i)
				break
			}
		}
	}
}

var unsafeIn = []string{"internal/arena", "internal/block", "internal/pointindex", "internal/shm"}

func TestUnsafe(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue // tests check sizes and alignment with it
		}
		for _, imp := range s.file.Imports {
			if imp.Path.Value == `"unsafe"` && !slices.Contains(unsafeIn, s.pkg) && !(s.pkg == "vfs" && strings.HasSuffix(s.path, "_darwin.go")) {
				t.Errorf("%s imports unsafe", s.path)
			}
		}
	}
}

// TestDocumented wants a comment on every exported identifier and every package.
func TestDocumented(t *testing.T) {
	documented := map[string]bool{}
	root := 0
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		documented[s.pkg] = documented[s.pkg] || s.file.Doc != nil
		for _, d := range s.file.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no doc comment", s.path, name)
			}
			if s.pkg == "" {
				root += exportedNames(d)
			}
		}
	}
	for p, ok := range documented {
		if !ok {
			t.Errorf("package %q has no package comment", p)
		}
	}
	if root > maxRootNames {
		t.Errorf("the root package exports %d identifiers, the limit is %d", root, maxRootNames)
	}
}

func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !standard(d) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for i, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && spec.Doc == nil && d.Doc == nil {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				if spec.Names[0].IsExported() && spec.Doc == nil && spec.Comment == nil && (d.Doc == nil || i > 0 && len(spec.Values) > 0 && d.Doc == nil) {
					names = append(names, spec.Names[0].Name)
				}
			}
		}
	}
	return names
}

// standard reports whether a method is one whose meaning the language gives.
func standard(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"String", "Error", "Unwrap"}, d.Name.Name)
}

// exportedReceiver reports whether a function is one of the package or a method
// of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func exportedNames(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Recv == nil {
			n++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					if id.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}

// TestReadmeExample: the README shows the code of Example, which is run.
func TestReadmeExample(t *testing.T) {
	code, err := readFile("../../example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(code), "// README: from here\n")
	body, _, ok := strings.Cut(body, "\t// README: to here")
	readme, err := readFile("../../README.md")
	if err != nil || !ok {
		t.Fatal("no marks around the example, or no README", err)
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "\t")
	}
	if !strings.Contains(string(readme), "```go\n"+strings.Join(lines, "\n")+"\n```") {
		t.Errorf("README.md does not show the code of Example:\n%s", strings.Join(lines, "\n"))
	}
}
