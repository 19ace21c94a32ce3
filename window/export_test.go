package window

// For tests in window_test.
var ImageCost = imageCost
