package engine

import "bytes"

func init() {
	Register(Driver{
		Info: Info{
			Name:  "gomap",
			Title: "a Go map in memory: the floor of reads, not a store",
			Floor: true,
			Cannot: map[Ability]string{
				CanSync:      "nothing on a disk to sync",
				CanDisk:      "keeps nothing on disk",
				CanOrder:     "a map has no order",
				CanView:      "a map has no transactions",
				CanScan:      "a map has no order",
				CanShare:     "a map is not safe for several goroutines",
				CanProcesses: "a map is within one process",
				CanMemory:    "a map keeps everything in memory",
				CanSettle:    "nothing runs in the background",
			},
		},
		Settings: func(Options) []Setting { return nil },
		Open: func(string, Options) (Store, error) {
			return gomapStore{}, nil
		},
	})
}

type gomapStore map[string][]byte

func (m gomapStore) Close() error { return nil }

func (m gomapStore) Put(key, value []byte) error {
	m[string(key)] = bytes.Clone(value)
	return nil
}

func (m gomapStore) Delete(key []byte) error {
	delete(m, string(key))
	return nil
}

func (m gomapStore) Get(key []byte, see func([]byte) error) error {
	value, ok := m[string(key)]
	if !ok {
		return ErrNotFound
	}
	return see(value)
}

func (m gomapStore) PutBatch(pairs Pairs) (string, error) {
	for key, value := range pairs {
		m[string(key)] = bytes.Clone(value)
	}
	return "", nil
}

func (m gomapStore) Keys(see func([]byte) error) error {
	return m.Pairs(func(key, _ []byte) error { return see(key) })
}

func (m gomapStore) Pairs(see func(key, value []byte) error) error {
	buf := make([]byte, 0, 64)
	for key, value := range m {
		buf = append(buf[:0], key...)
		if err := see(buf, value); err != nil {
			return err
		}
	}
	return nil
}
