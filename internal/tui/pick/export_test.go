package pick

func init() { pause = 0 } // a test does not type
