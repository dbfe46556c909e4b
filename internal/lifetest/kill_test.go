package lifetest

func killWriter() {}
