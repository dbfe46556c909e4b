package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// recordDisk records the sizes of everything under dir: apparent (the lengths of
// the files) and allocated (what the file system gave them, which is less where
// files have holes).
func recordDisk(rec *Recorder, dir, apparentKey, allocatedKey string) error {
	apparent, allocated, err := diskUse(dir)
	if err != nil {
		return fmt.Errorf("measuring the size on disk: %w", err)
	}
	rec.Set(apparentKey, float64(apparent))
	rec.Set(allocatedKey, float64(allocated))
	return nil
}

// diskUse adds up what is there: an open store may remove files meanwhile, which then do
// not count.
func diskUse(dir string) (apparent, allocated int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		apparent += info.Size()
		allocated += allocatedBytes(info)
		return nil
	})
	return apparent, allocated, err
}
