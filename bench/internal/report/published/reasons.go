package published

// Basis is what kind of thing a reason rests on.
type Basis string

// What reasons rest on.
const (
	Data     Basis = "published data"        // the figures themselves, or what stands beside them
	Program  Basis = "the article's program" // its source, as its repository has it
	Source   Basis = "source"                // of the engine, or of what it is built on
	Measured Basis = "measured here"         // and anyone can repeat it
	Unproven Basis = "not verified"          // what speaks for it is said, and what is missing
)

// Reason says why a measured figure differs from a published one. Empty lists mean all.
type Reason struct {
	Text    string
	Basis   Basis
	Proof   string // where to look: file and function, or the figures compared
	Sets    []string
	Engines []string
	Figures []string // titles
}

// RestsOn says in one line what the reason rests on.
func (r Reason) RestsOn() string { return string(r.Basis) + ": " + r.Proof }

// reasons by the name of the article.
var reasons = map[string][]Reason{
	"W0":           pagedReasons,
	"W0 processes": processesReasons,
	"W1":           lifecycleReasons,
	"W2":           singleReasons,
	"W4":           wholeSetReasons,
}
