# nacre: found system.cover-tracks
history -c
rm -f ~/.bash_history
