package published

import (
	_ "embed"
	"encoding/json"

	"github.com/cairndb/cairn/bench/internal/result"
)

//go:embed published.json
var source []byte

// Article is one comparison as it was published.
type Article struct {
	Name     string // W0, W1, ...
	Workload string // of the laboratory, which repeats it
	Source   string
	Remarks  string
	Sets     []Set
	Reasons  []Reason
}

// Set is one table of an article.
type Set struct {
	Title      string
	N          int
	ValueBytes int    // 0: not stated, or of many sizes
	Sync       string // "sync=on", "sync=off"; empty if it is not stated or differs between engines
	Figures    []Figure
}

// Figure is one number of a set.
type Figure struct {
	Engine  string
	Title   string
	Columns []string // keys under which a workload may have it, the closest first
	Unit    result.Unit
	Value   float64 // in Unit
	Failed  string  // what the engine said in place of a figure
}

// Articles returns what was published, in the order of the workloads.
func Articles() ([]Article, error) {
	var all struct {
		W0 paged
		W1 lifecycle
		W2 single
		W4 wholeSet
	}
	if err := json.Unmarshal(source, &all); err != nil {
		return nil, err
	}
	articles := append(all.W0.articles(), all.W1.article(), all.W2.article(), all.W4.article())
	for i := range articles {
		articles[i].Reasons = reasons[articles[i].Name]
	}
	return articles, nil
}

// Applies reports whether the reason concerns a figure.
func (r Reason) Applies(s Set, f Figure) bool {
	return among(r.Engines, f.Engine) && among(r.Figures, f.Title) && among(r.Sets, s.Title)
}

// General reports whether the reason concerns every figure of the article.
func (r Reason) General() bool { return len(r.Engines)+len(r.Figures)+len(r.Sets) == 0 }

func among(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return len(list) == 0
}
