//go:build !cairn

package engine

func init() {
	Register(Driver{Info: Info{
		Name:   "cairn",
		Title:  "this repository's engine",
		Module: "github.com/cairndb/cairn",
		Absent: "not in this build (built without -tags cairn)",
	}})
}
