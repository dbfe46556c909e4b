package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/cairndb/cairn"

// source is one parsed Go file of the engine's module.
type source struct {
	path  string // from the module's root, with slashes
	pkg   string // directory; "" for the root package
	test  bool
	bytes []byte
	file  *ast.File
	fset  *token.FileSet
}

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// sources parses every Go file of the engine's module; nested modules are not it.
func sources(t *testing.T) []*source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []*source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || nested(p)) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(rel, ".go") {
			s, err := parse(p, rel)
			all = append(all, s)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found only %d Go files: looking in the wrong place", len(all))
	}
	return all
}

func nested(dir string) bool {
	_, err := filepath.Glob(filepath.Join(dir, "go.mod"))
	m, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return err == nil && len(m) > 0
}

func parse(p, rel string) (*source, error) {
	b, err := readFile(p)
	if err != nil {
		return nil, err
	}
	s := &source{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), bytes: b, fset: token.NewFileSet()}
	if s.pkg == "." {
		s.pkg = ""
	}
	s.file, err = parser.ParseFile(s.fset, rel, b, parser.ParseComments)
	return s, err
}
