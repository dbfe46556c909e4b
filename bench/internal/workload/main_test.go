package workload

import (
	"os"
	"testing"

	"github.com/cairndb/cairn/bench/internal/scratch"
)

func TestMain(m *testing.M) { os.Exit(scratch.Tests(m.Run)) }
