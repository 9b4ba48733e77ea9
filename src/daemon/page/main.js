window.x = 1;
