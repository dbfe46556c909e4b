package html

import (
	"os"
	"testing"

	"github.com/cairndb/cairn/bench/internal/scratch"
)

// The browser leaves directories of its own in that for temporary files.
func TestMain(m *testing.M) { os.Exit(scratch.Tests(m.Run)) }
