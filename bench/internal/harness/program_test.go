package harness

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyThePureBuildOfThisProgramRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pure")
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("build 1")))
	if err := checkPure(file, sum); err == nil {
		t.Error("a missing build is taken")
	}
	if err := os.WriteFile(file, []byte("build 2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkPure(file, sum); err == nil {
		t.Error("another build is taken")
	}
	if err := os.WriteFile(file, []byte("build 1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkPure(file, sum); err != nil {
		t.Error(err)
	}
}

func TestWhichProgramRunsAnEngine(t *testing.T) {
	defer func(before string) { pureSum = before }(pureSum)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := childProgram("bbolt"); got != self || err != nil {
		t.Errorf("without a pure build: %s, %v", got, err)
	}
	pureSum = "sum"
	if got, err := childProgram("lmdb"); got != self || err != nil {
		t.Errorf("native row: %s, %v", got, err)
	}
	if got, err := childProgram("bbolt"); got != self+".pure" || err == nil {
		t.Errorf("pure row without its build: %s, %v", got, err)
	}
}
