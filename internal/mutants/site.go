package mutants

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// Kind says what is taken away at a Site.
type Kind string

// The kinds of site.
const (
	Sync     Kind = "sync"           // a file is not synced
	SyncDir  Kind = "directory sync" // a directory is not synced
	Checksum Kind = "checksum"       // two checksums are not compared
	Identity Kind = "identity"       // a file or frame is not compared with what it ought to be
	Mark     Kind = "durable mark"   // a durable mark is not compared
)

// Site is one place that is mutated.
type Site struct {
	Kind       Kind
	File       string // relative to the root of the module, with slashes
	Line       int
	Func       string // the function it is in
	Text       string // the expression
	from, to   int    // its bytes in the file
	substitute string
}

// Name identifies the site in one version of the sources.
func (s *Site) Name() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// dirs are the packages whose sites are mutated, relative to the module's root.
var dirs = []string{
	".", "internal/base", "internal/block", "internal/directory", "internal/durability", "internal/engine", "internal/frame", "internal/group", "internal/installer", "internal/layout", "internal/ledger",
	"internal/manifest", "internal/outfile", "internal/pace", "internal/recovery", "internal/table", "internal/tablefiles", "internal/tree", "internal/txn", "internal/wal",
}

// Sites finds all sites in the module at root.
func Sites(root string) (sites []*Site, err error) {
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			found, err := inFile(root, name)
			if err != nil {
				return nil, err
			}
			sites = append(sites, found...)
		}
	}
	return sites, nil
}

func inFile(root, name string) ([]*Site, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	f := &finder{set: set, src: src, file: filepath.ToSlash(rel)}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.fn = fn.Name.Name
			ast.Inspect(fn.Body, f.visit)
		}
	}
	sort.Slice(f.sites, func(i, j int) bool { return f.sites[i].from < f.sites[j].from })
	return f.sites, nil
}

// finder collects the sites of one file.
type finder struct {
	set   *token.FileSet
	src   []byte
	file  string
	fn    string
	sites []*Site
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		f.call(n)
	case *ast.IfStmt:
		f.condition(n)
	case *ast.BinaryExpr:
		f.comparison(n)
	}
	return true
}

// condition finds "if got, want := sum(...), stored; got != want".
func (f *finder) condition(n *ast.IfStmt) {
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if ok && cond.Op == token.NEQ && n.Init != nil && checksums.MatchString(f.text(n.Init)) {
		f.add(Checksum, cond, "("+f.text(cond)+" && false)")
	}
}

// call finds syncs. A call that only forwards to another Sync of ours counts too:
// leaving it out is the same fault.
func (f *finder) call(c *ast.CallExpr) {
	name, operands := "", []ast.Expr{}
	switch fun := c.Fun.(type) {
	case *ast.SelectorExpr:
		if name = fun.Sel.Name; name != "SyncAll" { // of package wal
			operands = append(operands, fun.X)
		}
	case *ast.Ident:
		name = fun.Name
	}
	kind := Kind("")
	switch name {
	case "Sync", "SyncAll", "sync", "MustSync", "SyncWritten", "syncWritten", "Confirm":
		kind = Sync
	case "SyncDir", "syncDir":
		kind = SyncDir
	default:
		return
	}
	body := ""
	for _, o := range append(operands, c.Args...) {
		body += "_ = " + f.text(o) + "; "
	}
	f.add(kind, c, "func() error { "+body+"return nil }()")
}

var (
	checksums  = regexp.MustCompile(`crc32\.|headerCRC|headerSum|\.checksum\(|\bchecksum\(|\bsum\(|\.Sum\(`)
	identities = regexp.MustCompile(`\b\w+\.(File|Store|Num|Prev|link|linkSum)\b`)
	marks      = regexp.MustCompile(`\bmark\b|\.Durable\b|\.marked\b`)
)

// comparison finds comparisons. Of "a || b" and "a && b" only the parts count.
func (f *finder) comparison(b *ast.BinaryExpr) {
	text, kind := f.text(b), Kind("")
	equality := b.Op == token.NEQ || b.Op == token.EQL
	order := b.Op == token.LSS || b.Op == token.GTR || b.Op == token.LEQ || b.Op == token.GEQ
	switch {
	case equality && checksums.MatchString(text):
		kind = Checksum
	case b.Op == token.NEQ && identities.MatchString(f.text(b.X)) && protective[filepath.ToSlash(filepath.Dir(f.file))]:
		kind = Identity
	case order && marks.MatchString(text) && protective[filepath.ToSlash(filepath.Dir(f.file))]:
		kind = Mark
	default:
		return
	}
	if b.Op == token.EQL {
		f.add(kind, b, "("+text+" || true)")
	} else {
		f.add(kind, b, "("+text+" && false)")
	}
}

// protective are the packages whose comparisons of identities and marks guard
// files; elsewhere the same names mean something else.
var protective = map[string]bool{"internal/wal": true, "internal/frame": true, "internal/layout": true, "internal/manifest": true, "internal/table": true}

func (f *finder) text(n ast.Node) string {
	var b bytes.Buffer
	printer.Fprint(&b, f.set, n)
	return b.String()
}

func (f *finder) add(kind Kind, n ast.Node, substitute string) {
	from, to := f.set.Position(n.Pos()), f.set.Position(n.End())
	f.sites = append(f.sites, &Site{
		Kind: kind, File: f.file, Line: from.Line, Func: f.fn, Text: f.text(n), from: from.Offset, to: to.Offset, substitute: substitute,
	})
}

// Mutate returns the file of a site in the module at root with the site taken away.
func (s *Site) Mutate(root string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.File)))
	if err != nil {
		return nil, err
	}
	if s.to > len(src) {
		return nil, fmt.Errorf("%s is shorter than it was", s.File)
	}
	return append(append(append([]byte(nil), src[:s.from]...), s.substitute...), src[s.to:]...), nil
}
